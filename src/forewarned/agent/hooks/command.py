"""Runs a program, with the event in its environment and as JSON on its standard input."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, field
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.retries import VetoError
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.hooks.templates import event_json, variables
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError
from forewarned.targets.programs import last_line, missing, run_program


class CommandHook(HookTable, frozen=True, kw_only=True):
    """Runs a program, with the event in `FOREWARNED_*` variables and as JSON on its stdin."""

    argv: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments. No shell is involved."""
    undo_argv: tuple[str, ...] = ()
    """The program that undoes it; without one there is no undo."""
    veto_exit_code: int | None = None
    """The exit code that means: done, but don't approve."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables it gets in addition to `PATH`, `LANG`, `HOME` and `FOREWARNED_*`."""
    directory: str = "/"
    """The directory it runs in, which `./program` is relative to."""

    def __post_init__(self) -> None:
        for name, value in self.environment.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(
                    f"{name!r} can't be a variable's name, or its value contains a NUL"
                )
        if any("\0" in part for part in (*self.argv, *self.undo_argv)):
            raise ValueError("an argument can't contain a NUL")
        if not all(argv[0] for argv in (self.argv, self.undo_argv) if argv):
            raise ValueError("the program's name can't be empty")
        if self.veto_exit_code is not None and not 1 <= self.veto_exit_code <= 255:
            raise ValueError("veto_exit_code must be from 1 to 255")
        if not self.directory.startswith("/"):
            raise ValueError("directory must be an absolute path")

    @property
    @override
    def has_undo(self) -> bool:
        return bool(self.undo_argv)

    @override
    async def run(self, call: Call) -> str:
        return await self._run(self.argv, call)

    @override
    async def put_back(self, call: Call) -> str:
        return await self._run(self.undo_argv, call)

    @override
    async def check(self) -> list[str]:
        found = [
            problem
            for argv in (self.argv, self.undo_argv)
            if argv
            for problem in missing(argv[0], directory=self.directory)
        ]
        return list(dict.fromkeys(found))

    @override
    def describe(self, phase: Phase) -> str:
        argv = self.undo_argv if phase is Phase.UNDO else self.argv
        return f"run {' '.join(argv)}" if argv else "nothing"

    async def _run(self, argv: Sequence[str], call: Call) -> str:
        if not argv:
            return "there is no undo_argv"
        call.waiting_for(f"{argv[0]} to end")
        ran = await run_program(
            argv,
            # Last, so that nothing in the file can override the event.
            variables={**self.environment, **variables(call)},
            stdin=event_json(call),
            directory=self.directory,
        )
        if ran.exit_code == 0:
            return last_line(ran.stdout)
        if ran.exit_code == self.veto_exit_code:
            raise VetoError(last_line(ran.stderr) or last_line(ran.stdout))
        raise TargetError(f"{argv[0]} {ran.last_words}")
