"""A coverage-guided search for bytes that the transport does not stand, as long as one likes: `tox -e fuzz`.

Room: run as a program, outside CI; it judges as the property tests of this folder do, and libFuzzer leads it to what
they leave out. An input is a first byte with the number of cuts, two bytes for each cut, and then the stream. What it
finds lies under `reports/out/fuzz`; a file given instead of options is played once more.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harness", "json", "re"]):
    from harness.transport.rpc import METHOD_NOT_FOUND
    from lanes.unit.transport.test_rpc_properties import LIMIT_BYTES, PROBE, answers, asked, cut

OUT = Path("reports") / "out" / "fuzz"
WORDS = (
    "id",
    "method",
    "params",
    "result",
    "error",
    "code",
    "message",
    "jsonrpc",
    "2.0",
    "null",
    "true",
    "1e999",
    "NaN",
)
SEEDS = (
    PROBE,
    b"\xef\xbb\xbf" + PROBE,
    b'{"id":null,"method":"x"}\r\n{"id":1,"result":{}}\n[1]\n',
    b'{"method":"x","params":[]}\n{"id":1.5,"error":{"code":-1,"message":"m"}}\n',
    b"[" * 400 + b"\n" + PROBE,
    b'{"id":"\\ud800","method":"\xe9\x9b\xa8"}\n{"id":1e999,"method":"x"}\n\xff\xfe\n',
)
LOOP = asyncio.new_event_loop()


def judge(data: bytes) -> None:
    """Raise when a stream is answered otherwise than by its requests, in their order, or held beyond the limit."""
    count = data[0] % 8 if data else 0
    cuts = [int.from_bytes(data[1 + 2 * at : 3 + 2 * at]) for at in range(count)]
    stream = data[1 + 2 * count :]
    written, held = LOOP.run_until_complete(answers([*cut(stream, cuts), b"\n", PROBE]))
    expected = asked(stream + b"\n" + PROBE)
    assert [(type(frame["id"]), frame["id"]) for frame in written] == [(type(one), one) for one in expected]
    assert {frame["error"]["code"] for frame in written} == {METHOD_NOT_FOUND}
    assert held <= LIMIT_BYTES


def main(arguments: list[str]) -> None:
    """Search with libFuzzer's options; without any, for three minutes."""
    corpus = OUT / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS):
        (corpus / f"seed-{number}").write_bytes(b"\x01\x00\x07" + seed)
    words = OUT / "words.txt"
    words.write_text("".join(f'"\\"{word}\\""\n"{word}"\n' for word in WORDS), "utf-8")
    fixed = [f"-dict={words}", f"-artifact_prefix={OUT}/", "-timeout=20", "-rss_limit_mb=1024", "-max_len=4096"]
    wanted = arguments or ["-max_total_time=180"]
    is_search = not any(Path(each).is_file() for each in wanted)
    atheris.Setup([sys.argv[0], *fixed, *wanted, *([str(corpus)] if is_search else [])], judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
