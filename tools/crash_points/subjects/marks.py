"""The actuator's marks: a program that has to run once for an event (I22).

Two subjects: the actuator, which marks what it is about to do and starts a runner; and the runner,
which outlives the actuator and records how the program ended.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from typing_extensions import override

from forewarned.actuators.command import runner
from forewarned.actuators.command.records import Folder
from forewarned.core.tasks import LEASE
from tests.actuators import killed_actuator
from tests.actuators.command.programs import program
from tests.actuators.served import rack1
from tests.control.control_thread import ControlThread
from tools.crash_points.subject import STOPPED, Life, Tell, Verdict

_KEY: Final = "event/web"


def counted_program(folder: Path) -> str:
    """Leaves a symbolic link behind each time: to make one is no call that is made to fail."""
    return program(_program(folder), f"ln -s run {_runs(folder)}.$$")


def runs(folder: Path) -> int:
    return len(list(folder.parent.glob(f"{_runs(folder).name}.*")))


class RunnerSubject:
    name = "runner"
    title = "the actuator's runner"

    def prepare(self, folder: Path) -> None:
        counted_program(folder)

    def live(self, folder: Path, tell: Tell) -> None:
        records = Folder(folder)
        try:
            records.mark(_KEY)
            with records.locked(_KEY, (str(_program(folder)),), {}):
                runner.run(records.path)
        except Exception as error:  # noqa: BLE001  # what a runner says, no one reads
            tell(f"{STOPPED} {error}")

    def attend(self, life: Life) -> list[str]:
        return life.told()

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:  # noqa: ARG002  # the record tells
        record, count = Folder(folder).read(), runs(folder)
        wrong = []
        if record.is_untouched and count:
            wrong.append("the record says that no program was started, and one was")
        if record.is_running:
            wrong.append("the record says that a program runs")
        return Verdict(
            lost=["the program's run"] if record.is_done and not count else [],
            doubled=["the program's run"] if count > 1 else [],
            wrong=wrong,
        )


class MarksSubject:
    name = "marks"
    title = "the actuator's marks"

    def __init__(self) -> None:
        self._open: ControlThread | None = None
        self._event_id = ""

    @property
    def _desk(self) -> ControlThread:
        assert self._open is not None
        return self._open

    @override
    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """The process that is killed gets one without a server."""
        return type(self), ()

    def prepare(self, folder: Path) -> None:
        counted_program(folder)
        self._open = ControlThread(actuator_of=rack1).__enter__()
        self._event_id = self._desk.call(self._desk.api.schedule("Reboot", "web"))["event_id"]
        _url(folder).write_text(self._desk.url)

    def live(self, folder: Path, tell: Tell) -> None:  # noqa: ARG002  # the server is told
        carry_out(folder)

    def attend(self, life: Life) -> list[str]:
        told = life.told()
        task = self._task()
        # Stuck: a runner that was killed leaves it open whether its program has done its work.
        if task["state"] in {"Failed", "Stuck"}:
            told.append(f"{STOPPED} {task['error']}")
        return told

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        try:
            if not told and self._task()["state"] != "Done":
                self._desk.call(self._desk.clock.step(LEASE))
                carry_out(folder)
            task, count = self._task(), runs(folder)
        finally:
            self._desk.__exit__()
        is_done = task["state"] == "Done"
        wrong = [] if is_done or told else [f"the task is {task['state']}: {task['error']}"]
        return Verdict(
            lost=["the reboot"] if is_done and not count else [],
            doubled=["the reboot"] if count > 1 else [],
            wrong=wrong,
        )

    def _task(self) -> Any:  # the JSON of /v1
        [task] = self._desk.call(self._desk.api.get("/v1/tasks", event=self._event_id))["tasks"]
        return task


def carry_out(folder: Path) -> None:
    """Run an actuator until it has reported on one task."""
    killed_actuator.run(_url(folder).read_text(), [str(_program(folder))], folder, None)


# Beside the folder, where no call fails.


def _program(folder: Path) -> Path:
    return folder.with_name("reboot")


def _url(folder: Path) -> Path:
    return folder.with_name("url")


def _runs(folder: Path) -> Path:
    return folder.with_name("run")
