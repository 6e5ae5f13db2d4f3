"""A wall clock that a test moves under a running program. Its monotonic clock stays as it is."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.packages import give_up, install

PACKAGE: Final = "faketime"


class FakeTime:
    """Programs that are started with this `environment` see the real time plus the offset."""

    def __init__(self, folder: Path) -> None:
        """The folder must be open to the programs' users."""
        self._offset = folder / "clock-offset"
        self._library = _library()
        self.move(timedelta(0))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            # It would read the file once in ten seconds otherwise.
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, offset: timedelta) -> None:
        """To the real time plus this, at once, and for all programs that have it."""
        draft = self._offset.with_suffix(".draft")
        draft.write_text(f"{offset.total_seconds():+f}\n")
        draft.chmod(0o644)
        draft.replace(self._offset)


def _library() -> Path:
    if not (found := installed()):
        install(PACKAGE)
        found = installed()
    if not found:
        give_up(f"libfaketime is not installed: `apt install {PACKAGE}` brings it")
    return found


def installed() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
