"""A handler that is a program of its own, in a sandbox.

Invariant: it has exited only when none of its processes is left. So a program that becomes a
daemon still runs, and a step that kills the handler kills all of it.
"""

import asyncio
import signal
from datetime import timedelta
from functools import partial

from forewarned.sandbox.namespace import ProgramError
from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.handlers.output import Output
from forewarned.scenarios.isolation.sandbox import LeftRunningError, Program, Sandbox
from forewarned.scenarios.observations import HandlerExited, HandlerPrinted
from forewarned.scenarios.ports import Endpoint, HandlerError, Tell


class ChildHandler:
    def __init__(self, command: CommandLine, sandbox: Sandbox) -> None:
        self._command = command
        self._sandbox = sandbox
        self._run: _Run | None = None

    @property
    def exit_code(self) -> int | None:
        return None if self._run is None else self._run.exit_code

    async def start(self, at: Endpoint, tell: Tell) -> None:
        await self.kill()
        words = self._command.filled(at)
        try:
            program = await self._sandbox.start(words, variables=self._command.variables(at))
        except ProgramError as error:
            raise HandlerError(str(error)) from error
        self._run = _Run(program, self._sandbox, tell)
        self._run.begin()

    async def kill(self) -> None:
        if self._run is None or self._run.exit_code is not None:
            return
        self._run.was_asked = True
        try:
            await self._sandbox.kill()
        except LeftRunningError:
            # The sandbox says so in the end, with what can be done.
            return
        await self._run.over

    async def stop(self, patience: timedelta) -> None:
        if self._run is None or self._run.exit_code is not None:
            return
        self._run.was_asked = True
        self._sandbox.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await asyncio.shield(self._run.over)
        except TimeoutError:
            await self.kill()


class _Run:
    """From one start to the end of it."""

    def __init__(self, program: Program, sandbox: Sandbox, tell: Tell) -> None:
        self._program = program
        self._sandbox = sandbox
        self._tell = tell
        self.exit_code: int | None = None
        self.was_asked = False
        self.over: asyncio.Task[None]
        self._outputs = (
            Output(program.output, partial(self._print, is_error=False)),
            Output(program.errors, partial(self._print, is_error=True)),
        )

    def begin(self) -> None:
        for output in self._outputs:
            output.begin()
        self.over = asyncio.create_task(self._watch())

    def _print(self, line: str, *, is_error: bool) -> None:
        self._tell(HandlerPrinted(line=line, is_error=is_error))

    async def _watch(self) -> None:
        code = await self._program.exited
        await self._sandbox.all_ended()
        for output in self._outputs:
            output.take_rest()
        self.exit_code = code
        self._tell(HandlerExited(code=code, was_asked=self.was_asked))
