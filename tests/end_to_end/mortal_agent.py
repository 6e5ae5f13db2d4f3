"""An agent that dies by its own hand: `mortal_agent.py KIND BOOT FILE`.

KIND is `after`, for just after the first fact that it writes to its journal, or `before`, for just
before the second, with all that happens in between done. BOOT is the VM's boot id.
"""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from typing_extensions import override

from forewarned.agent.assembly import run
from forewarned.agent.config.settings import load
from forewarned.agent.journal import AnyFact, Journal
from forewarned.agent.model import Progress


class MortalJournal(Journal):
    kind = "after"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._written = 0

    @override
    def write(self, fact: AnyFact) -> Progress:
        if self._written and self.kind == "before":
            self._die()
        progress = super().write(fact)
        self._written += 1
        if self.kind == "after":
            self._die()
        return progress

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    kind, boot, file = sys.argv[1:]
    MortalJournal.kind = kind
    logging.basicConfig(level=logging.INFO)
    asyncio.run(run(load(Path(file)), boot=boot, open_journal=MortalJournal))


if __name__ == "__main__":
    main()
