"""`python -m expense_agent LEDGER TASK`: the agent as a program; OPENAI_BASE_URL says where its model is."""

import asyncio
import os
import sys
from pathlib import Path

from expense_agent import keep, model_at


def main() -> int:
    """Do the task and print the agent's answer."""
    answer = asyncio.run(keep(sys.argv[2], Path(sys.argv[1]), model_at(os.environ.get("MODEL", "m-small"))))
    sys.stdout.write(answer + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
