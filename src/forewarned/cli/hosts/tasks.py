"""Tasks: what actuators do to the VMs of events that have started."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from forewarned.cli import lookup
from forewarned.cli.parameters import complete_event, complete_host, complete_vm
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import frameless
from forewarned.cli.wording import TYPE_STYLES, plain, short_ids
from forewarned.control.v1.tasks.wire import ShownTask, TaskList
from forewarned.core.tasks import TaskState

_STYLES: Final = {TaskState.STUCK: "bold red", TaskState.FAILED: "red", TaskState.BEGUN: "yellow"}


@click.group()
def tasks() -> None:
    """See what actuators do to VMs, and retry or skip tasks.

    A task is one VM's part of an event that has started. An actuator claims it and carries it out.
    """


@tasks.command("list")
@click.option(
    "--state",
    type=click.Choice(list(TaskState), case_sensitive=False),
    metavar="STATE",
    help="Only tasks in this state, like Stuck, of past events too.",
)
@click.option(
    "--host",
    metavar="HOST",
    help="Only tasks of VMs that were on this host.",
    shell_complete=complete_host,
)
@click.option(
    "--event", metavar="EVENT", help="Only tasks of this event.", shell_complete=complete_event
)
@click.option("--actuator", metavar="NAME", help="Only tasks of this actuator.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N tasks.")
@with_session
def list_tasks(
    session: Session,
    /,
    *,
    event: str | None,
    state: TaskState | None,
    **query: str | int | None,
) -> None:
    """List the tasks of open events, newest event first."""
    query |= {
        "event": None if event is None else lookup.event_id(session.control, event),
        "state": None if state is None else str(state),
    }
    answer = session.control.get("/v1/tasks", query)
    session.show(answer, lambda: _page(answer.read(TaskList).tasks))


@tasks.command()
@click.argument("event", metavar="EVENT", shell_complete=complete_event)
@click.argument("vm", metavar="VM", shell_complete=complete_vm)
@with_session
def retry(session: Session, event: str, vm: str) -> None:
    """Retry VM's task in EVENT. The task must be Stuck or Failed.

    EVENT is an id, or the first characters of one.
    """
    _order(session, event, vm, "retry")


@tasks.command()
@click.argument("event", metavar="EVENT", shell_complete=complete_event)
@click.argument("vm", metavar="VM", shell_complete=complete_vm)
@with_session
def skip(session: Session, event: str, vm: str) -> None:
    """Count the task of VM in EVENT as done, whatever became of the VM.

    EVENT is an id, or the first characters of one. When all tasks of the event are over, the event
    completes.
    """
    _order(session, event, vm, "skip")


def _order(session: Session, event: str, vm: str, what: str) -> None:
    event_id = lookup.event_id(session.control, event, lookup.STARTED)
    answer = session.control.post(f"/v1/tasks/{quote(event_id)}/{quote(vm, safe='')}/{what}")
    session.show(answer, lambda: _page((answer.read(ShownTask),)))


def _page(found: Sequence[ShownTask]) -> Iterator[RenderableType]:
    if not found:
        yield "no tasks"
        return
    yield _table(found)
    stuck = [task for task in found if task.state is TaskState.STUCK]
    if stuck:
        first = f"{short_ids(task.event_id for task in found)[stuck[0].event_id]} {stuck[0].vm}"
        yield ""
        yield f"To try again:        forewarned tasks retry {plain(first)}"
        yield f"To count it as done: forewarned tasks skip {plain(first)}"


def _table(found: Sequence[ShownTask]) -> Table:
    table = frameless("Event", "Type", "VM", "Host", "State", "Actuator and error")
    short = short_ids(task.event_id for task in found)
    for task in found:
        table.add_row(
            short[task.event_id],
            Text(task.type, TYPE_STYLES.get(task.type, "")),
            plain(task.vm),
            plain(task.host),
            Text(task.state, _STYLES.get(task.state, "")),
            plain(f"{task.actuator}: {task.error}" if task.error else task.actuator),
        )
    return table
