"""What the agent's commands print: tables with the sentences around them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from forewarned.agent.rehearsal import Fit, Rehearsed, RehearsedStep
from forewarned.agent.status.wire import AgentStatus, EventStatus, Stage, StepStatus
from forewarned.cli.agent.check import Target
from forewarned.cli.pages import facts
from forewarned.cli.tables import frameless
from forewarned.cli.wording import TYPE_STYLES, ago, instant, listing, plain, short_ids, span

_STAGE_STYLES: Final = {
    Stage.PREPARING: "yellow",
    Stage.READY: "green",
    Stage.NOT_PREPARED: "red",
    Stage.STARTED: "bold green",
    Stage.RESTORING: "yellow",
    Stage.FINISHED: "dim",
}
_STATE_STYLES: Final = {
    "running": "yellow",
    "to come": "dim",
    "skipped": "dim",
    "failed": "red",
    "timed_out": "red",
    "vetoed": "red",
    "interrupted": "red",
}
_NEVER_FOLDED: Final = frozenset({"Event", "Type", "Stage", "Left", "Phase", "Notice", "Took", ""})
_table: Final = partial(frameless, never_folded=_NEVER_FOLDED)
_CLOSE: Final = timedelta(seconds=2)
"""Clocks that are this near are shown as one."""
_SHORTEST_SHOWN: Final = timedelta(milliseconds=100)
_NO_RULE: Final = "none: the agent does nothing about it"


# --- status --------------------------------------------------------------------------------------


def status_page(status: AgentStatus, events: Sequence[EventStatus]) -> Iterator[RenderableType]:
    yield _heading(status)
    yield facts(_agent_facts(status))
    yield ""
    for warning in status.warnings:
        yield Text(f"Warning: {plain(warning)}", "red")
    if status.warnings:
        yield ""
    if not events:
        yield "No events."
        return
    table = _table("Event", "Type", "Stage", "Left", "Rule", "Waits for")
    short = short_ids(event.event_id for event in status.events)
    for event in events:
        table.add_row(
            short[event.event_id],
            Text(plain(event.type), TYPE_STYLES.get(event.type, "")),
            Text(event.stage, _STAGE_STYLES[event.stage]),
            event.time_left or "",
            plain(event.rule) or "none",
            plain(event.waits_for),
        )
    yield table


def _heading(status: AgentStatus) -> Text:
    return Text.assemble(
        (plain(status.resource) or "unknown VM", "bold"),
        "  ",
        ("healthy", "green") if status.healthy else ("not healthy", "red"),
        ", ",
        ("ready", "green") if status.ready else ("not ready", "yellow"),
        f": {plain(status.why)}" if status.why else "",
    )


def _agent_facts(status: AgentStatus) -> Iterator[tuple[str, str]]:
    yield "reads", plain(status.endpoint) or "nothing yet"
    if status.document_age is not None:
        incarnation = "" if status.incarnation is None else f"incarnation {status.incarnation}, "
        yield "document", f"{incarnation}read {status.document_age} ago"
    else:
        yield "document", "none yet"
    if (lead := _lead(status)) and status.document_at is not None:
        shown = f"{instant(status.document_at)} UTC at that read"
        side = "ahead of" if lead > timedelta(0) else "behind"
        yield "service's clock", f"{shown}, {span(abs(lead))} {side} this VM's"
    started = f"{instant(status.started_at)} UTC ({ago(status.started_at, status.now)})"
    yield "running since", started
    yield "version", plain(status.version)


def _lead(status: AgentStatus) -> timedelta:
    """How far the service's clock is from this VM's; zero where they agree."""
    if status.service_now is None:
        return timedelta(0)
    lead = status.service_now - status.now
    return lead if abs(lead) >= _CLOSE else timedelta(0)


# --- explain -------------------------------------------------------------------------------------


def explanation_page(event: EventStatus, status: AgentStatus) -> Iterator[RenderableType]:
    yield Text.assemble(
        (plain(event.type), TYPE_STYLES.get(event.type, "")),
        f" {event.event_id} ",
        (event.stage, _STAGE_STYLES[event.stage]),
    )
    yield facts(_event_facts(event, whose=" by the service's clock" if _lead(status) else ""))
    yield ""
    yield facts(_reasons(event))
    if event.steps:
        yield ""
        yield _step_table(event.steps)


def _event_facts(event: EventStatus, *, whose: str) -> Iterator[tuple[str, str]]:
    yield "VMs", listing(event.resources)
    yield "source", plain(event.source)
    if event.description:
        yield "description", plain(event.description)
    yield "duration", event.duration or "unknown"
    if event.not_before is not None:
        yield "NotBefore", f"{instant(event.not_before)} UTC{whose}"


def _reasons(event: EventStatus) -> Iterator[tuple[str, str]]:
    yield "rule", plain(event.rule) or _NO_RULE
    yield "step", "; ".join(_at_work(event.steps)) or "none is running"
    yield "waits for", plain(event.waits_for) or "nothing"
    yield "time left", event.time_left or "none: the event has no NotBefore"
    if event.rule:
        yield "approval", _approval(event)
    if event.not_put_back:
        whose = "its" if len(event.not_put_back) == 1 else "their"
        yield "not put back", f"{listing(event.not_put_back)}: undo {whose} changes by hand"
    if event.reappeared:
        yield "shown again", "after it was gone: the agent does nothing about it"
    if event.came_back:
        yield "VM restarted", "yes, since the event was first seen"


def _at_work(steps: Iterable[StepStatus]) -> Iterator[str]:
    for step in steps:
        if step.state == "running":
            limit = f", for {step.limit} at most" if step.limit else ""
            yield f"{plain(step.step)} ({step.phase}){limit}"


def _approval(event: EventStatus) -> str:
    if event.approved:
        return "given"
    policy = f'approve = "{event.approve}"'
    if event.leader:
        policy += f', leader = "{event.leader}"'
    if event.not_approved_because:
        return f"{policy}; not given: {plain(event.not_approved_because)}"
    return f"{policy}; not given" if event.stage is Stage.FINISHED else f"{policy}; not given yet"


def _step_table(steps: Iterable[StepStatus]) -> Table:
    table = _table("Phase", "Step", "State", "Took", "Detail")
    for step in steps:
        table.add_row(
            step.phase,
            plain(step.step) if step.required else f"{plain(step.step)} (optional)",
            _state(step.state),
            step.took or ("unknown" if step.state == "interrupted" else ""),
            plain(step.detail),
        )
    return table


def _state(state: str) -> Text:
    return Text(plain(state).replace("_", " "), _STATE_STYLES.get(state, ""))


# --- rehearse ------------------------------------------------------------------------------------


def rehearsal_page(found: Rehearsed, *, resource: str) -> Iterator[RenderableType]:
    how = "hooks were run and undone" if found.live else "no hook was run"
    yield Text.assemble(
        (found.type, TYPE_STYLES.get(found.type, "")), f" of {plain(resource)}, rehearsed: {how}"
    )
    yield facts(_verdict(found))
    if found.steps:
        yield ""
        yield _rehearsed_table(found.steps)
    yield ""
    yield _fit_table(found.fits)
    yield ""
    missed = ", ".join(found.missed)
    if missed:
        yield Text(f"This VM would not be ready in time for: {missed}.", "red")
    else:
        yield "This VM would be ready in time for every type."


def _verdict(found: Rehearsed) -> Iterator[tuple[str, str]]:
    yield "rule", plain(found.rule) or _NO_RULE
    if found.rule:
        refusal = found.not_approved_because
        yield "approval", "would be given" if refusal is None else f"not given: {plain(refusal)}"


def _rehearsed_table(steps: Iterable[RehearsedStep]) -> Table:
    table = _table("Phase", "Step", "State", "Takes", "What")
    for step in steps:
        outcome = step.outcome
        told = "" if outcome is None else outcome.detail
        table.add_row(
            step.turn.phase,
            plain(step.turn.step),
            Text("not run", "dim") if outcome is None else _state(outcome.verdict),
            "" if outcome is not None and outcome.took is None else took(step.takes),
            plain(told or step.what),
        )
    return table


def _fit_table(fits: Iterable[Fit]) -> Table:
    table = _table("Type", "Notice", "Takes", "Rule", "Fits")
    for fit in fits:
        table.add_row(
            Text(fit.type, TYPE_STYLES.get(fit.type, "")),
            span(fit.notice),
            took(fit.takes),
            plain(fit.rule) or "none",
            _fits(fit),
        )
    return table


def _fits(fit: Fit) -> Text:
    if fit.is_missed:
        return Text("no", "red")
    if fit.left_out:
        return Text(f"without {listing(fit.left_out)}", "yellow")
    return Text("yes", "green") if fit.rule else Text("nothing to do", "dim")


def took(length: timedelta) -> str:
    """To a tenth of a second below a minute: hooks are often quick."""
    if timedelta(0) < length < _SHORTEST_SHOWN:
        return "<0.1s"
    if length < timedelta(minutes=1):
        return f"{length.total_seconds():.1f}s"
    return span(length)


# --- check ---------------------------------------------------------------------------------------


def check_table(targets: Iterable[Target]) -> Table:
    table = _table("Target", "Kind", "", "Found")
    for target in targets:
        table.add_row(
            plain(target.name),
            target.kind,
            Text("bad", "red") if target.problems else Text("ok", "green"),
            "\n".join(plain(problem) for problem in target.problems),
        )
    return table
