"""`python -m lanes`: the same as the console command `lanes`.

Room: nobody imports it.
"""

import sys

from lanes.cli import main

sys.exit(main())
