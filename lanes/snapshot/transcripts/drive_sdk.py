"""Our client in Python on the story of the SDK transcript; `drive_sdk.mjs` is the same in Node.

Room: run as a program by `lanes.transcripts`, with the path of a task; says what came of its runs as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from harness.client import HarnessClient, Launch
from harness.client.runs import RunResult

TASK: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
PROMPTS: tuple[Any, ...] = (
    "Write the note.",
    [{"type": "text", "text": "Was it "}, {"type": "text", "text": "written?"}],
)


def said(result: RunResult) -> dict[str, Any]:
    """What a client says of a run."""
    return {
        "sessionId": result.session_id,
        "messageId": result.message_id,
        "finalResponse": result.final_response,
        "finishReason": result.finish_reason,
        "events": len(result.events),
        "notifications": len(result.notifications),
    }


async def main() -> None:
    """Run the prompts one after the other, then cancel what does not run any more, and leave."""
    launch = Launch(
        cwd=TASK["workspace"],
        provider=TASK["provider"],
        model=TASK["model"],
        command=tuple(TASK["command"]),
        max_tokens=4096,
    )
    async with HarnessClient(launch) as client:
        results: list[Any] = [said(await client.run(prompt, session_id="story", timeout_s=50)) for prompt in PROMPTS]
        results.append({"cancelled": await client.cancel("story")})
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main())
