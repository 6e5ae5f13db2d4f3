"""`forewarned doctor`: every check, and what they found."""

import resource
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from forewarned.cli.commands.authority import FILE
from forewarned.cli.commands.serve import refuse_missing_packages, setting_options
from forewarned.cli.credentials import credential_options, trust_unless_given
from forewarned.cli.doctor.finding import Finding, Severity, note, problem
from forewarned.cli.failures import ExitCode, RefusedError, UnreachableError
from forewarned.cli.session import Session, is_control_named, json_option, printed_as_json
from forewarned.clock import wall_clock
from forewarned.config.values import Address
from forewarned.runtime.settings import Resolved, Settings, SettingsError, load_here
from forewarned.storage.errors import CannotOpenError

if TYPE_CHECKING:
    from rich.table import Table

    from forewarned.storage.examination import Examined

_STYLES: Final = {Severity.PROBLEM: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


@click.command()
@setting_options
@credential_options
@json_option
def doctor(*, config: Path | None, **flags: str | None) -> None:
    """Find out what is wrong with a server's set-up.

    It takes the options of 'forewarned serve', and looks at what a server with these options would
    use: settings, files and their permissions, addresses, certificates, tokens, the store, the
    disk, the clock. If the server is running, this command also asks it about its nodes, tasks,
    sources and events.

    Each finding says what is wrong, where, and what to do. The command exits with 1 if there is a
    problem, and with 0 if there are only warnings and notes. It changes nothing.
    """
    context = click.get_current_context()
    found = list(_findings(context, config, flags))
    has_problem = any(each.severity is Severity.PROBLEM for each in found)
    listed = [asdict(each) for each in found]
    if not printed_as_json({"ok": not has_problem, "findings": listed}):
        _print(found)
    if has_problem:
        context.exit(ExitCode.REFUSED)


def _print(found: list[Finding]) -> None:
    session = Session()
    if found:
        session.print([_table(found)])
        session.print([""])
    counts = [
        f"{number} {severity}{'' if number == 1 else 's'}"
        for severity in Severity
        if (number := sum(each.severity is severity for each in found))
    ]
    session.print([", ".join(counts) or "Nothing is wrong."])


def _table(found: list[Finding]) -> "Table":
    from rich.text import Text

    from forewarned.cli.tables import frameless

    table = frameless("", "Where, what is wrong, and what to do", never_folded={""})
    for each in sorted(found, key=lambda one: list(Severity).index(one.severity)):
        said = "\n".join(line for line in (each.where, each.what, each.todo) if line)
        table.add_row(Text(each.severity, _STYLES[each.severity]), said)
    return table


def _findings(
    context: click.Context, config: Path | None, flags: dict[str, str | None]
) -> Iterator[Finding]:
    try:
        resolved = load_here(flags=flags, path=config)
    except SettingsError as error:
        from forewarned.cli.doctor.given import bad_settings

        yield from bad_settings(error)
        return
    try:
        refuse_missing_packages()
    except RefusedError as error:
        yield problem("not_installed", where="", what=error.message, todo=error.advice[0])
        return
    yield from _local(resolved)
    if not is_control_named(context):
        trust_unless_given(context, resolved.settings.data.absolute() / FILE)
    yield from _around(resolved, is_named=is_control_named(context))


def _local(resolved: Resolved) -> Iterator[Finding]:
    """What can be seen without a server."""
    # Here and below: some of it needs packages that have just been looked for.
    from forewarned.cli.doctor import (
        certificates,
        given,
        listeners,
        machine,
        state_directory,
        tokens,
    )

    settings, now = resolved.settings, wall_clock()
    yield from given.of_settings(resolved)
    yield from given.of_fleet(settings)
    yield from state_directory.of_directory(settings)
    yield from tokens.of_tokens(settings, now=now)
    yield from certificates.of_certificates(settings, now=now)
    yield from machine.of_clock(settings, machine.clock_state())
    yield from listeners.of_port_marks(settings)
    yield from listeners.of_open_files(settings, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _around(resolved: Resolved, *, is_named: bool) -> Iterator[Finding]:
    """The store, and the server that uses it, or could."""
    from forewarned.cli.doctor import listeners, stores
    from forewarned.cli.doctor.running_server import RunningServer

    settings, examined = resolved.settings, None
    try:
        examined = stores.examined(settings)
    except CannotOpenError as error:
        yield stores.unusable(error, settings)
    if examined is not None:
        yield from stores.of_file(settings, examined, now=wall_clock())
    if settings.store is not None:
        yield from stores.of_database(settings.store)
    session = Session() if is_named else Session(_control_url(settings))
    try:
        yield from RunningServer(session.control, resolved).of_health()
    except UnreachableError as error:
        yield from _without_answer(str(error), examined)
        if examined is None or examined.holder is None:
            yield from listeners.of_listeners(settings)


def _control_url(settings: Settings) -> str:
    at = settings.control
    if at.host in {"0.0.0.0", "::"}:  # noqa: S104  # all addresses, and so this one
        at = Address("127.0.0.1" if at.host == "0.0.0.0" else "::1", at.port)  # noqa: S104
    return f"{'https' if settings.control_is_tls else 'http'}://{at}"


def _without_answer(why: str, examined: "Examined | None") -> Iterator[Finding]:
    if examined is not None and examined.holder is not None:
        yield problem(
            "server_silent",
            where=f"process {examined.holder}",
            what=f"it has this store open, but its control listener does not answer: {why}",
            todo="Give its address with --control, and its certificate with --ca. If it hangs, its"
            " log says why; then restart it.",
        )
        return
    yield note("not_running", where="", what="no server is running with these settings")
