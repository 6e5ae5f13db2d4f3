"""Numbers about the service, as Prometheus reads them.

Whatever happens often is counted where it happens, in plain numbers, and added up here now and
then; so measuring costs a poll next to nothing.
"""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from forewarned.core import transitions
from forewarned.core.model import EventStatus, EventType
from forewarned.core.tasks import NOT_CARRIED_OUT, TaskState
from forewarned.core.transitions import Completed, EventTransition
from forewarned.service.drains.model import DrainState
from forewarned.service.nodes import NodesView
from forewarned.service.records import Commit, CommitCounts
from forewarned.service.sources.notes import SourceState
from forewarned.service.subscriptions.model import Health

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

_REFUSED: Final = "refused_"
_COMMIT_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_WAKE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 30)

OpenEvents = Mapping[tuple[EventType, EventStatus], int]
OpenTasks = Mapping[tuple[str, TaskState], int]
"""By actuator and state."""


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._newest_change: datetime | None = None
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        self._polls = counter("forewarned_polls", "Polls answered, by kind of answer.", ["answer"])
        self._waits = counter("forewarned_waits", "Polls that waited for a change.")
        self._approvals = counter("forewarned_approvals", "Requests by VMs that approved events.")
        self._refusals = counter(
            "forewarned_refusals", "Requests by VMs that were refused, by reason.", ["reason"]
        )
        transitions = counter(
            "forewarned_transitions", "Transitions of events.", ["action", "type"]
        )
        self._transitions = transitions
        self._happened: Tally[tuple[type[EventTransition], EventType]] = Tally()
        """Transitions since they were last added to the metric, which takes longer than a change
        should wait for."""
        self._commits = histogram(
            "forewarned_commit_seconds",
            "Time from the request for a change until it is durable and announced.",
            buckets=_COMMIT_BUCKETS,
        )
        self._wakes = histogram(
            "forewarned_wake_lateness_seconds",
            "Time from when work fell due until it was done.",
            buckets=_WAKE_BUCKETS,
        )
        self._events = gauge("forewarned_events", "Open events.", ["type", "status"])
        self._failures = counter(
            "forewarned_events_not_carried_out",
            "Events that ended although the work was not carried out on one or more of their VMs.",
            ["type"],
        )
        self._drains = gauge(
            "forewarned_drains", "Host drains, counting only the newest of each host.", ["state"]
        )
        self._tasks = gauge("forewarned_tasks", "Tasks of open events.", ["actuator", "state"])
        self._listed = gauge(
            "forewarned_source_listing_age_seconds",
            "Time since the last complete listing of a platform; -1 before the first.",
            ["source"],
        )
        self._brought = gauge(
            "forewarned_source_vms",
            "VMs in the fleet that come from a platform's listings.",
            ["source"],
        )
        self._silent = gauge(
            "forewarned_source_silent_hosts",
            "Hosts that did not answer in the last listing.",
            ["source"],
        )
        self._scopes = gauge("forewarned_scopes", "Scopes.")
        self._age = gauge(
            "forewarned_newest_change_age_seconds",
            "Time since the newest change, by the server's clock; 0 before the first.",
        )
        self._lag = gauge(
            "forewarned_store_lag_seconds",
            "Upper bound on how far this server is behind a shared store; 0 if its store is not"
            " shared.",
        )
        self._nodes = gauge("forewarned_nodes", "Servers on this store.", ["state"])
        self._epoch = gauge(
            "forewarned_store_epoch",
            "A number that changes when a shared store may have lost what VMs were shown; 0 if the"
            " store is not shared.",
        )
        self._reruns = counter(
            "forewarned_store_reruns",
            "Changes that were retried because they conflicted with other changes.",
        )
        self._unknown_outcomes = counter(
            "forewarned_store_unknown_outcomes",
            "Changes whose callers were told that the outcome is unknown.",
        )
        self._certificate = gauge(
            "forewarned_certificate_expiry_timestamp_seconds",
            "When the certificate that this server presents expires, in seconds since 1970; 0 if it"
            " has none.",
        )
        self._chained = counter(
            "forewarned_history_chained_rows", "Rows that this server added to the hash chain."
        )
        self._removed = counter(
            "forewarned_history_removed_rows", "Old rows of history that this server removed."
        )
        self._counted = CommitCounts(0, 0)
        self._counted_rows = (0, 0)
        self._delivered = gauge(
            "forewarned_subscription_delivered_total",
            "Messages that were delivered to a subscription, by any node.",
            ["subscription"],
        )
        self._failed = gauge(
            "forewarned_subscription_failed_attempts_total",
            "Failed attempts to send a message, by any node.",
            ["subscription"],
        )
        self._pending = gauge(
            "forewarned_subscription_pending", "Messages to be delivered.", ["subscription"]
        )
        self._undelivered = gauge(
            "forewarned_subscription_undelivered",
            "Messages that the server has given up on, and keeps.",
            ["subscription"],
        )
        self._too_old = gauge(
            "forewarned_subscription_removed_total",
            "Messages that were removed without having been delivered, because they were too old.",
            ["subscription"],
        )
        self._publishing_lag = gauge(
            "forewarned_subscription_lag_seconds",
            "How long the oldest pending message has been waiting.",
            ["subscription"],
        )

    def certificate_expires(self, at: datetime | None) -> None:
        self._certificate.set(0 if at is None else at.timestamp())

    def add(self, counts: Mapping[str, int]) -> None:
        """What a metadata listener has counted since it was last asked."""
        self._polls.labels("document").inc(counts.get("documents", 0))
        self._polls.labels("unmodified").inc(counts.get("unmodified", 0))
        self._waits.inc(counts.get("waits", 0))
        self._approvals.inc(counts.get("approvals", 0))
        for name, number in counts.items():
            if name.startswith(_REFUSED):
                self._refusals.labels(name.removeprefix(_REFUSED)).inc(number)

    def add_nodes(self, found: NodesView, counts: CommitCounts) -> None:
        """What the store says of its nodes, and what this one has counted since its start."""
        fresh = sum(node.is_fresh for node in found.nodes)
        self._nodes.labels("fresh").set(fresh)
        self._nodes.labels("stale").set(len(found.nodes) - fresh)
        self._epoch.set(found.epoch or 0)
        self._reruns.inc(counts.reruns - self._counted.reruns)
        self._unknown_outcomes.inc(counts.unknown_outcomes - self._counted.unknown_outcomes)
        self._counted = counts

    def add_history(self, *, chained: int, removed: int) -> None:
        """Rows, since the server's start."""
        before = self._counted_rows
        self._chained.inc(chained - before[0])
        self._removed.inc(removed - before[1])
        self._counted_rows = (chained, removed)

    def add_sources(self, sources: Sequence[SourceState], *, now: datetime) -> None:
        for family in (self._listed, self._brought, self._silent):
            family.clear()
        for source in sources:
            at = source.complete_at
            age = -1 if at is None else max((now - at).total_seconds(), 0)
            self._listed.labels(source.name).set(age)
            self._brought.labels(source.name).set(source.vms)
            self._silent.labels(source.name).set(len(source.silent))

    def add_subscriptions(self, health: Mapping[str, Health]) -> None:
        """What the store says, which is the same at every node."""
        for family in (
            *(self._delivered, self._failed, self._pending, self._undelivered),
            *(self._too_old, self._publishing_lag),
        ):
            family.clear()
        for name, each in health.items():
            self._delivered.labels(name).set(each.delivered)
            self._failed.labels(name).set(each.failed)
            self._pending.labels(name).set(each.pending)
            self._undelivered.labels(name).set(each.undelivered)
            self._too_old.labels(name).set(each.removed)
            self._publishing_lag.labels(name).set(each.lag.total_seconds())

    def hear(self, commit: Commit) -> None:
        for fact in commit.transitions:
            self._newest_change = fact.at
            if isinstance(fact, EventTransition):
                self._happened[type(fact), fact.event.type] += 1
            if isinstance(fact, Completed) and fact.reason.startswith(NOT_CARRIED_OUT):
                self._failures.labels(fact.event.type.value).inc()

    def committed(self, seconds: float) -> None:
        self._commits.observe(seconds)

    def woke(self, late: timedelta) -> None:
        self._wakes.observe(late.total_seconds())

    def render(
        self,
        *,
        events: OpenEvents,
        tasks: OpenTasks,
        drains: Mapping[DrainState, int],
        scopes: int,
        now: datetime,
        lag: timedelta,
    ) -> bytes:
        for (kind, type_), number in self._happened.items():
            self._transitions.labels(transitions.word(kind), type_.value).inc(number)
        self._happened.clear()
        # Actuators come and go, and so do the states that any task is in.
        self._tasks.clear()
        for (actuator, state), number in tasks.items():
            self._tasks.labels(actuator, state.value).set(number)
        for drain_state in DrainState:
            self._drains.labels(drain_state.value).set(drains.get(drain_state, 0))
        self._lag.set(lag.total_seconds())
        self._scopes.set(scopes)
        for type_ in EventType:
            for status in (EventStatus.SCHEDULED, EventStatus.STARTED):
                self._events.labels(type_.value, status.value).set(events.get((type_, status), 0))
        if self._newest_change is not None:
            self._age.set(max((now - self._newest_change).total_seconds(), 0))
        return generate_latest(self._registry)
