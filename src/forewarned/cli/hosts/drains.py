"""`forewarned host list|drain|status|undrain`: empty a host, and see how far that has come."""

import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from forewarned.cli.failures import CommandError
from forewarned.cli.parameters import complete_host, read_span
from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import frameless
from forewarned.cli.wording import count, plain
from forewarned.control.v1.drains.wire import ShownDrain, ShownMove
from forewarned.control.v1.wire import DrainSummary, Host
from forewarned.core.model import EventType
from forewarned.service.drains.model import DrainState, MoveState

if TYPE_CHECKING:
    from forewarned.cli.connection import Answer

_ANYWAY: Final = (
    "VMs that can't be moved stay, and VMs that don't read their document are moved without notice."
)
_WAYS: Final = {"live-migrate": EventType.FREEZE, "cold-move": EventType.REDEPLOY}
_STYLES: Final = {
    MoveState.BLOCKED: "bold red",
    MoveState.MOVING: "yellow",
    MoveState.MOVED: "green",
}
_OVER: Final = frozenset({DrainState.EMPTY, DrainState.STUCK, DrainState.CANCELED})
_BETWEEN_LOOKS: Final = 1.0


@click.command("list")
@with_session
def list_hosts(session: Session) -> None:
    """Show hosts, with how many VMs each has, and how far its drain has come.

    A host without VMs is listed while no VM may be moved to it.
    """
    answer = session.control.get("/v1/hosts")
    session.show(answer, lambda: _hosts_page(answer.read(list[Host])))


@click.command()
@click.argument("name", metavar="HOST", shell_complete=complete_host)
@click.option(
    "--by",
    "way",
    type=click.Choice(list(_WAYS)),
    default="live-migrate",
    help="How VMs are moved: live-migrate with a Freeze, cold-move with a Redeploy"
    " [default: live-migrate].",
)
@click.option(
    "--wave",
    type=click.IntRange(min=1),
    metavar="N",
    help="Give N VMs the same NotBefore [default: 4]. A VM that approves is moved earlier.",
)
@click.option(
    "--deadline", type=read_span, metavar="SPAN", help="How soon the host must be empty, like 6h."
)
@click.option("--notice", type=read_span, metavar="SPAN", help="More notice than the minimum.")
@click.option("--short-notice", is_flag=True, help="Allow less than the minimum, on an emulator.")
@click.option("--dry-run", is_flag=True, help="Say which VMs can't be moved, and do nothing.")
@click.option(
    "--yes", is_flag=True, help="Go ahead even if VMs can't be moved, or don't read their document."
)
@click.option("--wait", is_flag=True, help="Show progress until the host is empty.")
@click.option(
    "--then", "argv", metavar="COMMAND", help="Wait, then run COMMAND if the host is empty."
)
@with_session
def drain(
    session: Session,
    /,
    *,
    name: str,
    way: str,
    dry_run: bool,
    yes: bool,
    wait: bool,
    argv: str | None,
    **asked: str | int | bool | None,
) -> None:
    """Move every VM of HOST to other hosts, each with notice.

    A VM is moved as soon as it approves, and at its NotBefore at the latest. No VM is moved to HOST
    until 'forewarned host undrain'.
    """
    body: dict[str, object] = {
        **{key: value for key, value in asked.items() if value is not None},
        "type": _WAYS[way],
        "dry_run": dry_run,
        "anyway": yes,
    }
    answer = session.control.post(_path(name), body)
    answer = _until(session, name, answer, frozenset(DrainState) - {DrainState.PLANNING})
    found = answer.read(ShownDrain)
    if found.state is DrainState.PLANNED and not dry_run:
        if session.is_json or not sys.stdin.isatty():
            raise _obstructed(found)
        session.print(_page(found))
        click.confirm(f"{_ANYWAY} Go ahead?", abort=True)
        answer = session.control.post(_path(name), body | {"anyway": True})
    if (wait or argv) and not dry_run:
        answer = _until(session, name, answer, _OVER)
    session.show(answer, lambda: _page(answer.read(ShownDrain)))
    if dry_run:
        return
    if argv:
        _run_then(answer.read(ShownDrain), argv)
    elif wait:
        _refuse_unless_empty(answer.read(ShownDrain))


@click.command()
@click.argument("name", metavar="HOST", shell_complete=complete_host)
@click.option("--wait", is_flag=True, help="Show progress until the drain is over.")
@with_session
def status(session: Session, name: str, *, wait: bool) -> None:
    """Show how far the drain of HOST has come and, for each VM, what it is waiting for or how long
    it was interrupted.
    """
    answer = session.control.get(_path(name))
    first = answer.read(ShownDrain).state
    if wait:
        answer = _until(session, name, answer, _OVER | {DrainState.PLANNED})
    session.show(answer, lambda: _page(answer.read(ShownDrain)))
    if wait and first in {DrainState.RETURNING, DrainState.CANCELED}:
        found = answer.read(ShownDrain)
        refuse_unless_returned(found.vms, found.host)
    elif wait:
        _refuse_unless_empty(answer.read(ShownDrain))


@click.command()
@click.argument("name", metavar="HOST", shell_complete=complete_host)
@click.option(
    "--return",
    "returns",
    is_flag=True,
    help="Move the VMs that were moved away back to HOST, each with notice.",
)
@with_session
def undrain(session: Session, name: str, *, returns: bool) -> None:
    """Cancel the moves of a drain that have not begun, and allow VMs to be moved to HOST again.

    'forewarned host status HOST --wait' shows VMs on their way back.
    """
    answer = session.control.delete(_path(name) + ("?return=true" if returns else ""))
    session.show(answer, lambda: _page(answer.read(ShownDrain)))


def _hosts_page(found: Sequence[Host]) -> Iterator[RenderableType]:
    if not found:
        yield "no host has VMs"
        return
    table = frameless("Host", "VMs", "Cordoned", "Drain")
    for host in found:
        is_cordoned = host.drain is not None and host.drain.cordoned
        table.add_row(
            plain(host.name),
            str(len(host.vms)),
            Text("yes", "yellow") if is_cordoned else "no",
            plain(_drain_words(host.drain)),
        )
    yield table


def _drain_words(found: DrainSummary | None) -> str:
    """Empty for a drain that was ended: it no longer matters."""
    if found is None or found.state is DrainState.CANCELED:
        return ""
    back = " back" if found.state is DrainState.RETURNING else ""
    words = f"{found.state}, {found.moved} of {count(found.vms, 'VM')} moved{back}"
    # Why a host counts as Empty is a sentence of its own.
    mark = ";" if found.state is DrainState.EMPTY else ":"
    return f"{words}{mark} {found.reason}" if found.reason else words


def _path(host: str) -> str:
    return f"/v1/hosts/{quote(host, safe='')}/drain"


def _until(
    session: Session, host: str, answer: "Answer", wanted: frozenset[DrainState]
) -> "Answer":
    """Look again until the drain is in one of the wanted states, showing how far it is."""
    found = answer.read(ShownDrain)
    if found.state in wanted:
        return answer
    pause = threading.Event()
    with Live(console=session.out, transient=True, auto_refresh=False) as live:
        while found.state not in wanted:
            if not session.is_json and session.out.is_terminal:
                live.update(Group(*_page(found)), refresh=True)
            pause.wait(_BETWEEN_LOOKS)
            answer = session.control.get(_path(host))
            found = answer.read(ShownDrain)
    return answer


def _obstructed(found: ShownDrain) -> CommandError:
    return CommandError(
        f"the drain of {found.host} was not started: {found.reason}",
        f"--yes goes ahead. {_ANYWAY}",
        code="drain_obstructed",
    )


def _refuse_unless_empty(found: ShownDrain, but: str = "") -> None:
    if found.state is not DrainState.EMPTY:
        raise CommandError(
            f"{found.host} is not empty: its drain is {found.state}{but}", code="host_not_empty"
        )


def refuse_unless_returned(moves: Iterable[ShownMove], host: str) -> None:
    """A return that is over is told from a drain that was ended by where its VMs are."""
    away = [each.vm for each in moves if not _is_back(each, host)]
    if away:
        raise CommandError(
            f"the drain of {host} has ended, but these VMs were not moved back: {', '.join(away)}",
            code="vms_not_returned",
        )


def _is_back(move: ShownMove, host: str) -> bool:
    return move.state is MoveState.MOVED and move.moved_to in {None, host}


def _run_then(found: ShownDrain, command: str) -> None:
    _refuse_unless_empty(found, ". The command was not run.")
    # A shell, as for any command that an operator types.
    ended = subprocess.run(command, shell=True, check=False)  # noqa: S602
    click.get_current_context().exit(ended.returncode)


def _page(found: ShownDrain) -> Iterator[RenderableType]:
    moved = sum(1 for each in found.vms if each.state is MoveState.MOVED)
    yield plain(_headline(found))
    if found.vms:
        back = " back" if found.state is DrainState.RETURNING else ""
        yield plain(f"{moved} of {count(len(found.vms), 'VM')} moved{back}")
        yield ""
        yield _table(found)


def _headline(found: ShownDrain) -> str:
    if found.state is DrainState.EMPTY:
        line = f"{found.host} has been empty since {_clock(found.since)}"
        return f"{line}; {found.reason}" if found.reason else line
    line = f"{found.host}: {found.state}"
    if found.dry_run:
        line += " (dry run: nothing is moved)"
    return f"{line}: {found.reason}" if found.reason else line


def _table(found: ShownDrain) -> Table:
    table = frameless("VM", "State", "Progress")
    for move in found.vms:
        table.add_row(
            plain(move.vm), Text(move.state, _STYLES.get(move.state, "")), plain(progress_of(move))
        )
    return table


def progress_of(move: ShownMove) -> str:
    match move.state:
        case MoveState.ASKED:
            words = f"actuator {move.actuator} is being asked whether the VM can be moved"
        case MoveState.WAITING:
            words = "waits to be moved" + (f" to {move.target}" if move.target else "")
            words += "" if move.reads else ", without notice: the VM does not read its document"
        case MoveState.NOTICE if move.not_before is not None:
            words = f"waits for the VM's approval, until {_clock(move.not_before)} at the latest"
        case MoveState.MOVED if move.moved_to is not None:
            away = "" if move.away is None else f", interrupted for {move.away:.2f} s"
            words = f"on {move.moved_to}{away}"
        case MoveState.MOVING:
            words = move.progress or (f"to {move.target}" if move.target else "")
        case _:
            words = ""
    return "; ".join(filter(None, (words, move.reason)))


def _clock(instant: datetime) -> str:
    return f"{instant:%H:%M:%S}Z"
