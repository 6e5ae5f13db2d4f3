"""Readiness through a directory that the VMs of an event share: a file for each event and VM.

Files are replaced whole, so that readers never see half a report. A report that can't be read does
not count.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec
from typing_extensions import override

from forewarned.agent.readiness.ports import Readiness, ReadinessError, ReadinessReport
from forewarned.security.files import PUBLIC, replace_file


class DirectoryReports(Readiness):
    def __init__(self, path: Path) -> None:
        self._path = path

    @override
    async def report(self, event_id: str, me: str, report: ReadinessReport) -> None:
        # In threads: access to a network file system that is down blocks.
        await asyncio.to_thread(self._write, self._file(event_id, me), report)

    @override
    async def reports(self, event_id: str) -> Mapping[str, ReadinessReport]:
        return await asyncio.to_thread(lambda: dict(self._read(self._folder(event_id))))

    @override
    async def forget(self, event_id: str, me: str) -> None:
        await asyncio.to_thread(self._remove, self._file(event_id, me))

    def _folder(self, event_id: str) -> Path:
        return self._path / f"event-{_file_name(event_id.lower())}"

    def _file(self, event_id: str, me: str) -> Path:
        return self._folder(event_id) / f"{_file_name(me.lower())}.json"

    def _write(self, file: Path, report: ReadinessReport) -> None:
        with self._telling():
            # Not its parents: if the shared file system is not mounted, no other VM would see it.
            file.parent.mkdir(exist_ok=True)
            replace_file(file, msgspec.json.encode(report), mode=PUBLIC)

    def _read(self, folder: Path) -> Iterator[tuple[str, ReadinessReport]]:
        with self._telling():
            if not self._path.is_dir():
                raise ReadinessError(f"there is no directory {self._path}")
            for file in sorted(folder.glob("*.json")):
                with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
                    report = msgspec.json.decode(file.read_bytes(), type=ReadinessReport)
                    yield unquote(file.stem), report

    def _remove(self, file: Path) -> None:
        with self._telling():
            file.unlink(missing_ok=True)
            # Other agents may still have reports in there; the last one removes it.
            with contextlib.suppress(OSError):
                file.parent.rmdir()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ReadinessError(f"the directory {self._path}: {error.strerror}") from error


def _file_name(name: str) -> str:
    """Names come from outside: none may lead to another directory."""
    return quote(name, safe="").replace(".", "%2E")
