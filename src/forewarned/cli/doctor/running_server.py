"""The running server, as its control API shows it: its store, nodes, tasks, sources and events."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from forewarned import __version__
from forewarned.cli.connection import Control
from forewarned.cli.doctor.finding import Finding, note, problem, warning
from forewarned.cli.failures import CommandError, RefusedError, ServerFailedError
from forewarned.cli.wording import count
from forewarned.config.durations import format_duration
from forewarned.control.v1 import wire
from forewarned.control.v1.sources.wire import ShownSource, SourceList
from forewarned.control.v1.subscriptions.wire import ShownSubscription, SubscriptionList
from forewarned.control.v1.tasks.wire import TaskList
from forewarned.core.tasks import TaskState
from forewarned.runtime.settings import Resolved
from forewarned.service.attention import GRACE, UNKNOWN_IMPACT
from forewarned.service.subscriptions.condition import Condition

_MOST: Final = 5
"""Findings of one kind: there may be as many as there are VMs."""
_UNCLAIMED: Final = timedelta(minutes=2)
_UNWELL: Final = "it answered 503"


class RunningServer:
    """Asks what it is allowed to. A server that refuses to say something is not ill for that."""

    def __init__(self, control: Control, resolved: Resolved) -> None:
        self._control = control
        self._resolved = resolved
        self._where = control.address

    def of_health(self) -> Iterator[Finding]:
        """Raises UnreachableError if no server answers."""
        try:
            answer = self._control.get("/v1/health")
            answer.read(wire.Status)
        except ServerFailedError as error:
            yield self._failure(error)
            return
        try:
            health = answer.read(wire.Health)
        except CommandError:
            # Without a token it says no more than that it is well.
            yield note(
                "no_token_given",
                where=self._where,
                what="without a token, the server reports only whether it works",
                todo="Put a token with the role reader into FOREWARNED_TOKEN.",
            )
            return
        if (other := self._other_server()) is not None:
            yield other
            return
        if health.version != __version__:
            yield warning(
                "other_version",
                where=self._where,
                what=f"the server is version {health.version}, this command {__version__}",
                todo="Restart the server after an upgrade.",
            )
        checks = (
            *(self._settings, self._nodes, self._tasks, self._sources),
            *(self._events, self._subscriptions),
        )
        for check in checks:
            try:
                yield from check()
            except RefusedError:
                continue

    def _other_server(self) -> Finding | None:
        """With another data directory: then nothing that it says is about these settings."""
        try:
            found = self._control.get("/v1/endpoints").read(wire.Endpoints)
        except RefusedError:
            return None
        own = str(self._resolved.settings.data.absolute())
        if found.data in {own, ""}:
            return None
        return problem(
            "port_taken",
            where=f"control = {self._where}",
            what=f"another Forewarned server listens there, whose data directory is {found.data}",
            todo="Stop it, or give this server other addresses.",
        )

    def _failure(self, error: ServerFailedError) -> Finding:
        # A server that is not well answers with its status, and not as it refuses requests.
        if error.message.endswith(_UNWELL):
            return self._unwell("it can't reach its store")
        if error.code != "not_understood":
            return self._unwell(error.message)
        return problem(
            "port_taken",
            where=f"control = {self._where}",
            what="another program listens there",
            todo="Stop it, or give control another address.",
        )

    def _unwell(self, why: str) -> Finding:
        return problem(
            "store_unavailable",
            where=self._where,
            what=f"the server is running, but {why}: VMs read the last documents, and nothing"
            " changes",
            todo="Look at the server's log, and at its disk or its database.",
        )

    def _settings(self) -> Iterator[Finding]:
        """Those that a file or the environment has changed since the server started."""
        running = {
            each.name: each.value
            for each in self._control.get("/v1/settings").read(list[wire.Setting])
        }
        for name, value, origin in self._resolved.listing():
            was = running.get(name)
            if was is not None and was != value and origin.startswith("file"):
                yield warning(
                    "settings_changed",
                    where=origin,
                    what=f"{name} is {value} here, and {was} in the running server",
                    todo="Restart the server to use the file as it is now.",
                )

    def _nodes(self) -> Iterator[Finding]:
        yield from of_nodes(self._control.get("/v1/nodes").read(wire.Nodes))

    def _tasks(self) -> Iterator[Finding]:
        tasks = self._control.get("/v1/tasks").read(TaskList).tasks
        stuck = [each for each in tasks if each.state is TaskState.STUCK]
        for task in stuck[:_MOST]:
            yield problem(
                "task_stuck",
                where=f"VM {task.vm}, event {task.event_id}",
                what=task.error or f"actuator {task.actuator} gave up",
                todo="`forewarned tasks retry` tries it again; `forewarned tasks skip` counts it as"
                " done.",
            )
        now = self._control.get("/v1/clock").read(wire.Clock).now
        waiting = [
            each
            for each in tasks
            if each.state is TaskState.WAITING
            and each.claimable_at is not None
            and now - each.claimable_at > _UNCLAIMED
        ]
        for actuator in sorted({each.actuator for each in waiting})[:_MOST]:
            number = sum(each.actuator == actuator for each in waiting)
            yield problem(
                "tasks_unclaimed",
                where=f"actuator {actuator}",
                what=f"tasks not claimed for {format_duration(_UNCLAIMED)} or more: {number}",
                todo="If the server runs this actuator itself, the server's log says why it is not"
                " running. Otherwise start it on its machine with `forewarned actuator run`.",
            )
        if more := len(stuck[_MOST:]):
            yield note(
                "task_stuck",
                where="",
                what=f"{more} more {'task is' if more == 1 else 'tasks are'} stuck",
                todo="`forewarned tasks list --state Stuck` lists them.",
            )

    def _sources(self) -> Iterator[Finding]:
        yield from of_sources(self._control.get("/v1/sources").read(SourceList).sources)

    def _events(self) -> Iterator[Finding]:
        now = self._control.get("/v1/clock").read(wire.Clock).now
        started = self._control.get("/v1/events", {"status": "Started"}).read(wire.Events).events
        overdue = [
            each
            for each in started
            if each.started_at is not None and each.started_at + _expected(each) + GRACE < now
        ]
        for event in overdue[:_MOST]:
            yield warning(
                "event_overdue",
                where=f"event {event.event_id}",
                what=f"started at {event.started_at:%Y-%m-%d %H:%M} UTC, and is not complete",
                todo=f"`forewarned explain {event.event_id}` says what it waits for.",
            )
        if more := len(overdue[_MOST:]):
            what = f"{more} more {'event is' if more == 1 else 'events are'} overdue"
            yield note("event_overdue", where="", what=what)

    def _subscriptions(self) -> Iterator[Finding]:
        found = self._control.get("/v1/subscriptions").read(SubscriptionList)
        yield from of_subscriptions(found.subscriptions)


def of_nodes(found: wire.Nodes) -> Iterator[Finding]:
    for node in found.nodes:
        if not node.fresh:
            silent = found.now - node.seen_at
            yield warning(
                "node_stale",
                where=f"node {node.name} ({node.control})",
                what=f"last seen {format_duration(_whole(silent))} ago;"
                f" it was {format_duration(node.lag.length)} behind the store at that time",
                todo="If it was stopped for good, do nothing: it is forgotten after a day."
                " Otherwise look at its log and its connection to the database.",
            )
    if found.standbys == "":
        yield warning(
            "one_copy",
            where="the database",
            what="it has no synchronous standby, so a failover can lose confirmed changes",
            todo="Set synchronous_standby_names in PostgreSQL.",
        )


def of_sources(found: Sequence[ShownSource]) -> Iterator[Finding]:
    for source in found:
        if source.error:
            yield problem("source_failing", where=f"source {source.name}", what=source.error)
        elif source.silent:
            hosts = ", ".join(sorted(source.silent)[:_MOST])
            yield warning(
                "hosts_silent",
                where=f"source {source.name}",
                what=f"{count(len(source.silent), 'host')} did not answer: {hosts}",
                todo="Their VMs stay as they were. `forewarned sources list` says why.",
            )


def of_subscriptions(found: Sequence[ShownSubscription]) -> Iterator[Finding]:
    for each in found:
        where = f"subscription {each.name} ({each.target.place})"
        if each.condition is Condition.PAUSED and each.health.failures:
            yield warning(
                "subscription_paused",
                where=where,
                what=f"it is paused, and its last attempt failed ({each.health.last_error});"
                f" waiting: {count(each.health.pending, 'message')}",
                todo="Correct the target, then run `forewarned subscription resume`.",
            )
        if each.health.undelivered:
            yield problem(
                "messages_undelivered",
                where=where,
                what=f"{count(each.health.undelivered, 'message')} could not be delivered:"
                f" {each.health.last_error}",
                todo="Correct the target, then run `forewarned subscription redeliver`.",
            )
        elif each.condition is Condition.FAILING:
            yield warning(
                "subscription_failing",
                where=where,
                what=f"{count(each.health.failures, 'attempt')} failed since the last delivery"
                f" ({each.health.last_error});"
                f" waiting: {count(each.health.pending, 'message')}",
                todo="Correct the target. The server tries each message again for a day.",
            )


def _expected(event: wire.Event) -> timedelta:
    return UNKNOWN_IMPACT if event.duration is None else event.duration.length


def _whole(span: timedelta) -> timedelta:
    return timedelta(seconds=max(0, round(span.total_seconds())))
