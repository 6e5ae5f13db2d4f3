"""The agent of this VM: running it, checking its file, its status, rehearsals."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from forewarned.cli.failures import CommandError, RefusedError, UsageError
from forewarned.cli.parameters import complete_type, read_event_type
from forewarned.cli.session import Session, json_option, printed_as_json
from forewarned.cli.wording import count, mistakes_of

if TYPE_CHECKING:
    from forewarned.agent.config.settings import AgentSettings

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_FILE: Final = Path("/etc/forewarned/agent.toml")
_DEFAULT_AGENT: Final = "127.0.0.1:8172"

_config_option = click.option(
    "--config",
    envvar="FOREWARNED_AGENT_CONFIG",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    default=_DEFAULT_FILE,
    help=f"The agent's file [env: FOREWARNED_AGENT_CONFIG; default: {_DEFAULT_FILE}].",
)
_agent_option = click.option(
    "--agent",
    "address",
    envvar="FOREWARNED_AGENT",
    metavar="HOST:PORT",
    default=_DEFAULT_AGENT,
    help=f"Address the agent listens on [env: FOREWARNED_AGENT; default: {_DEFAULT_AGENT}].",
)


@click.group()
def agent() -> None:
    """Prepare this VM for its events, approve them, and recover.

    'forewarned agent run' runs the agent; the other commands check its file, or query it.
    """
    if sys.platform == "win32":
        # Its hooks are ended by process group, and it is stopped by signals.
        raise RefusedError(
            "the agent runs on Linux and macOS, not on Windows",
            "Handle events in your own program, with forewarned.client, which runs on Windows too.",
            code="not_posix",
        )


@agent.command()
@_config_option
def run(config: Path) -> None:
    """Run the agent until interrupted.

    You can stop it at any moment and start it again: it continues where it left off.
    """
    settings = _load(config, UsageError)
    import asyncio

    from forewarned.agent.assembly import AgentError
    from forewarned.agent.assembly import run as run_agent
    from forewarned.runtime import logs

    table = settings.agent
    logs.configure(level=table.log_level, as_json=table.log_format == "json")
    try:
        asyncio.run(run_agent(settings))
    except AgentError as error:
        raise RefusedError(str(error), code="cannot_start") from error


@agent.command()
@click.argument(
    "file",
    metavar="[FILE]",
    envvar="FOREWARNED_AGENT_CONFIG",
    type=click.Path(path_type=Path, dir_okay=False),
    default=_DEFAULT_FILE,
)
@click.option("--offline", is_flag=True, help="Check only the file, not the targets that it names.")
@json_option
def check(file: Path, *, offline: bool) -> None:
    """Check FILE, and the targets of its hooks.

    Nothing is changed: hooks only look at their targets, and no event is read.
    """
    settings = _load(file, RefusedError)
    if offline:
        found = []
    else:
        import asyncio

        from forewarned.cli.agent.check import check_targets

        found = asyncio.run(check_targets(settings))
    from forewarned.cli.agent.pages import check_table

    problems = sum(len(each.problems) for each in found)
    if not printed_as_json({"file": str(file), "targets": found}):
        Session().print([check_table(found), ""] if found else [])
        hooks, rules = count(len(settings.hooks), "hook"), count(len(settings.rules), "rule")
        click.echo(f"{file}: {rules}, {hooks}; no mistakes")
    if problems:
        raise RefusedError(
            f"{count(problems, 'problem')} with targets that the file names", code="bad_targets"
        )


@agent.command()
@click.option("--all", "all_", is_flag=True, help="Include events that are over.")
@_agent_option
@json_option
def status(address: str, *, all_: bool) -> None:
    """Show the agent's state, and what it does about each event."""
    from forewarned.cli.agent.pages import status_page
    from forewarned.cli.agent.status import ask

    told = ask(address)
    session = Session()
    if session.is_json:
        click.echo(msgspec.json.format(told.body, indent=-1))
        return
    events = [
        each
        for each in told.status.events
        if all_ or each.stage != "finished" or each.not_put_back or each.reappeared
    ]
    session.print(status_page(told.status, events))


@agent.command()
@click.argument("event", metavar="[EVENT]", default="")
@_agent_option
@json_option
def explain(event: str, *, address: str) -> None:
    """Show which rule applies to EVENT, and what the agent is waiting for.

    EVENT is an id, or the first characters of one; omit it if only one event is open.
    """
    from forewarned.cli.agent.pages import explanation_page
    from forewarned.cli.agent.status import ask, find

    told = ask(address).status
    found = find(told, event)
    if not printed_as_json(found):
        Session().print(explanation_page(found, told))


@agent.command()
@click.argument("type_", metavar="TYPE", type=read_event_type, shell_complete=complete_type)
@click.option("--live", is_flag=True, help="Run the hooks and undo them; approve nothing.")
@_config_option
@json_option
def rehearse(type_: str, *, live: bool, config: Path) -> None:
    """Rehearse an event of TYPE, and show for which types there is too little time.

    Without --live, no hook runs: each step is described, and assumed to take as long as the file
    says. With --live, hooks really run, are timed, and are undone again.
    """
    settings = _load(config, UsageError)
    import asyncio

    from forewarned.cli.agent.pages import rehearsal_page
    from forewarned.cli.agent.rehearsal import as_json, refuse_while_busy, rehearse_here

    if live:
        refuse_while_busy(settings)
    resource, found = asyncio.run(rehearse_here(settings, type_, live=live))
    if not printed_as_json(as_json(found, resource=resource)):
        Session().print(rehearsal_page(found, resource=resource))
    if not found.is_ready:
        raise RefusedError(f"this VM would not be ready for a {type_} in time", code="not_ready")


def _load(file: Path, kind: type[CommandError]) -> "AgentSettings":
    from forewarned.agent.config.settings import SettingsError, load

    try:
        return load(file)
    except SettingsError as error:
        raise kind(
            *mistakes_of(file, error),
            code="bad_agent_file",
            field="file",
            details=str(error),
        ) from error
