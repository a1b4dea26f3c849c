"""Who asks: wrk, where it is installed, else this process, which takes several times as much of a processor.

A server that answers faster than it is asked looks as slow as who asks. All servers of a run are asked by the same.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mock_provider.bodies import COUNTER, PATH
from benchmarks.mock_provider.load import NUMBERS, ask, run, spell

WRK = shutil.which("wrk")
NAME = "wrk" if WRK else "asyncio"
_COUNTED = re.compile(r"^ *([0-9]+) requests in ([0-9.]+)(us|ms|s),", re.MULTILINE)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_TROUBLE = re.compile(r"Non-2xx|Socket errors")

# wrk calls `request` for each one; what differs is put between the parts, as an Asker does it.
_LUA = """
local parts, number, same = {}, 0, nil
function init(given)
  number = tonumber(given[1])
  for at = 2, #given do
    local file = assert(io.open(given[at], "rb"))
    parts[#parts + 1] = file:read("*a")
    file:close()
  end
  if number < 0 then same = table.concat(parts, "00000000") end
end
function request()
  if same then return same end
  number = number + 1
  return table.concat(parts, string.format("%08d", number))
end
"""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back. Shape: first_byte_s is empty where nobody looked."""

    count: int
    wall_s: float
    first_byte_s: tuple[float, ...] = ()


def ask_much(port: int, body: bytes, *, connections: int, total: int, round_s: int, is_varied: bool) -> Answered:
    """Ask over kept connections, each again as soon as it is answered.

    Shape: wrk asks for round_s seconds, this process `total` times. Raises: RuntimeError for an answer that is not 200.
    """
    if WRK is None:
        wall_s, askers = run(ask(port, body, connections=connections, total=total, is_varied=is_varied))
        return Answered(total, wall_s, tuple(time_s for asker in askers for time_s in asker.first_byte_s))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "asks.lua"
        script.write_text(_LUA, encoding="ascii")
        files: list[str] = []
        for at, part in enumerate(spell(port, body).split(COUNTER.encode())):
            path = Path(folder) / f"part{at}"
            path.write_bytes(part)
            files.append(str(path))
        command = [WRK, "-t1", f"-c{connections}", f"-d{round_s}s", "-s", str(script), f"http://127.0.0.1:{port}{PATH}"]
        first = next(NUMBERS) if is_varied else -1
        said = subprocess.run([*command, "--", str(first), *files], capture_output=True, text=True, check=True).stdout
    counted = _COUNTED.search(said)
    count = int(counted.group(1)) if counted else 0
    if counted is None or not count or _TROUBLE.search(said):
        raise RuntimeError(f"wrk was not answered as expected:\n{said}")
    if is_varied:  # the next round goes on where this one ended, those included that it did not wait for
        next(itertools.islice(NUMBERS, count + 2 * connections, None))
    return Answered(count, float(counted.group(2)) * _UNITS[counted.group(3)])
