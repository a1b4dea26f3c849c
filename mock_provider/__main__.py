"""`python -m mock_provider`: the same command as `mock-provider`.

Room: nobody comes in.
"""

from mock_provider.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
