"""`python -m mock_provider`: the same command as `mock-provider`.

Room: nobody comes in. The command is loaded inside, because a person may interrupt that as well.
"""


def main() -> int:
    """Run the command; gives the exit code."""
    try:
        from mock_provider.cli import main as run_command
    except KeyboardInterrupt:
        return 130
    return run_command()


if __name__ == "__main__":
    raise SystemExit(main())
