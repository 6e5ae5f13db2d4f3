"""How much memory exports take: run with the number of rows and the formats.

Prints, for each format, how many lines were sent and the growth in KiB. In a process of its own,
whose peak is nobody else's.
"""

import asyncio
import re
import sys
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any

from forewarned.storage.connection_threads import unchanged
from tests.control.control_api import ControlApi, control_api

_STATUS = Path("/proc/self/status")
FILL = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
    INSERT INTO history (at, actor, address, action, scope_id, resources, cause)
    SELECT 1767614400000000 + n, 'cli:ada', '127.0.0.1', 'started', 'vm/web', '["web"]',
           'one of very many reasons' FROM numbers
"""


async def measure(rows: int, formats: Iterable[str]) -> None:
    async with control_api() as control:
        fill = FILL.format(rows=rows)
        # Behind the store's back: through it, a million rows take an hour.
        await control.store._writer.run(lambda tx: tx._writable.write(fill), unchanged)
        for format_ in formats:
            await _export(control, format_, most=3)
            before = _fresh_peak()
            lines = await _export(control, format_)
            sys.stdout.write(f"{format_} {lines} {_peak() - before}\n")


async def _export(control: ControlApi, format_: str, most: int | None = None) -> int:
    """How many lines there are. `most` pieces are taken, if given."""
    lines = pieces = 0
    gone = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal lines, pieces
        lines += message.get("body", b"").count(b"\n")
        pieces += 1
        if pieces == most:
            gone.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/history/export",
        "query_string": f"format={format_}".encode(),
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
    }
    await control.app(scope, receive, send)
    return lines


def _fresh_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    found = re.search(r"VmHWM:\s*([0-9]+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]), sys.argv[2:]))
