"""The wrong edits. Each breaks one promise, and looks like something a person might write."""

from dataclasses import dataclass
from typing import Final

CORE: Final = "tests/core"
STORAGE: Final = "tests/storage"
MACHINE: Final = "tests/stateful/test_machine.py"
IN_SQLITE: Final = f"{MACHINE}::TestInSqlite"
FOUND: Final = "tests/stateful/test_found.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str
    file: str
    """Below `src/forewarned`."""
    old: str
    """Found exactly once in the file."""
    new: str
    breaks: str
    """The promise, by its number, and how."""
    tests: tuple[str, ...]


_RULES: Final = (
    Mutant(
        name="notice-rounded-down",
        file="core/notice.py",
        old="return whole if whole == exact else whole + _SECOND",
        new="return whole",
        breaks="I1, I2: NotBefore is up to a second before the notice is over",
        tests=(MACHINE,),
    ),
    Mutant(
        name="notice-too-short",
        file="core/notice.py",
        old="return timedelta(minutes=10)",
        new="return timedelta(minutes=9, seconds=59)",
        breaks="I2: a Redeploy gives a second too little notice",
        tests=(MACHINE,),
    ),
    Mutant(
        name="due-too-late",
        file="core/starting.py",
        old="event.not_before is not None and event.not_before <= now",
        new="event.not_before is not None and event.not_before < now",
        breaks="I20: at its NotBefore an event does not start yet",
        # Below the core this is a wake that falls due for ever: not a test to wait for.
        tests=(CORE,),
    ),
    Mutant(
        name="due-too-early",
        file="core/starting.py",
        old="event.not_before is not None and event.not_before <= now",
        new="event.not_before is not None and (event.not_before - now).total_seconds() <= 1",
        breaks="I1: a wake within the last second starts the event",
        tests=(MACHINE,),
    ),
    Mutant(
        name="not-before-kept",
        file="core/starting.py",
        old="event, status=EventStatus.STARTED, not_before=None, started_at=now, start_cause=why",
        new="event, status=EventStatus.STARTED, started_at=now, start_cause=why",
        breaks="I3: NotBefore is not blank once the event has started",
        tests=(CORE,),
    ),
    Mutant(
        name="bump-for-nothing",
        file="core/change.py",
        old="if _shown(before) == _shown(change.scope):",
        new="if before is change.scope:",
        breaks="I6: the incarnation moves for an approval that VMs can't see",
        tests=(MACHINE,),
    ),
    Mutant(
        name="no-bump-on-start",
        file="core/change.py",
        old="if _shown(before) == _shown(change.scope):",
        new="if list(before.events) == list(change.scope.events):",
        breaks="I6: an event starts and the incarnation stays",
        tests=(MACHINE,),
    ),
    Mutant(
        name="incarnation-starts-again",
        file="core/lifecycle.py",
        old="incarnation = 1 if rules.resets_incarnation else change.scope.incarnation",
        new="incarnation = change.scope.incarnation if rules.resets_incarnation else 1",
        breaks="I7: after a day of silence the incarnation falls",
        tests=(MACHINE,),
    ),
    Mutant(
        name="incarnation-reset",
        file="core/reset.py",
        old="change = Change(scope=replace(scope, rounds=None))",
        new="change = Change(scope=replace(scope, rounds=None, incarnation=1))",
        breaks="I7: a reset of an emulator lets the incarnation fall",
        tests=(f"{CORE}/test_reset.py", "tests/control/v1/test_reset.py"),
    ),
    Mutant(
        name="several-update-domains",
        file="core/lifecycle.py",
        old="if len(domains) > 1:",
        new="if len(domains) > 2:",
        breaks="I9: one event names VMs of two update domains",
        tests=(MACHINE,),
    ),
    Mutant(
        name="unknown-id-overlooked",
        file="core/lifecycle.py",
        old="[_open_event(scope, event_id, closed) for event_id in dict.fromkeys(event_ids)]",
        new="[_open_event(scope, i, closed) for i in [*event_ids][:1]]"
        " + [scope.events.get(i) for i in [*event_ids][1:]]",
        breaks="I15: the first id is approved though a later one is unknown",
        tests=(MACHINE,),
    ),
    Mutant(
        name="approved-again",
        file="core/lifecycle.py",
        old="event.status is EventStatus.SCHEDULED and event.approval is None",
        new="event.status is EventStatus.SCHEDULED",
        breaks="I12: a second approval is a change of its own",
        tests=(MACHINE,),
    ),
    Mutant(
        name="started-and-approved",
        file="core/lifecycle.py",
        old="event.status is EventStatus.SCHEDULED and event.approval is None",
        new="event.approval is None",
        breaks="I13: an event that has started is approved",
        tests=(MACHINE,),
    ),
    Mutant(
        name="announced-to-nobody",
        file="core/lifecycle.py",
        old="announced=scope.active and not plan.silent,",
        new="announced=not plan.silent,",
        breaks="I28: a scope that no VM reads gets notice all the same",
        tests=(MACHINE,),
    ),
    Mutant(
        name="terminate-batch-ignored",
        file="core/starting.py",
        old="if event.type is not EventType.TERMINATE or not event.announced",
        new="if event.type is EventType.TERMINATE or not event.announced",
        breaks="I17: an approved Terminate does not wait for the others",
        tests=(MACHINE,),
    ),
    Mutant(
        name="terminate-batch-earlier-only",
        file="core/starting.py",
        old="and other.not_before <= event.not_before",
        new="and other.not_before < event.not_before",
        breaks="I17: an approved Terminate does not wait for simultaneous ones",
        tests=(MACHINE,),
    ),
    Mutant(
        name="maintenance-does-not-wait",
        file="core/starting.py",
        old="return scope.rounds is None or scope.rounds.id != work",
        new="return False",
        breaks="I16: a host's maintenance begins before every scope is ready",
        tests=(MACHINE,),
    ),
    Mutant(
        name="next-round-at-start",
        file="core/starting.py",
        old="any(event.maintenance == work.id for event in scope.events.values()):",
        new="any(e.maintenance == work.id and e.not_before for e in scope.events.values()):",
        breaks="I21: a set's next update domain does not wait for the one before to be over",
        tests=(MACHINE,),
    ),
    Mutant(
        name="two-update-domains",
        file="core/maintenance.py",
        old="busy = _domains_under_work(scope) - {domain}",
        new="busy = _domains_under_work(scope) & {domain}",
        breaks="I21: maintenance of two hosts takes two update domains of a set",
        tests=(MACHINE,),
    ),
    Mutant(
        name="silence-forgets-events",
        file="core/lifecycle.py",
        old="asleep = replace(change.scope, active=False, incarnation=incarnation)",
        new="asleep = replace(change.scope, active=False, incarnation=incarnation, events={})",
        breaks="I19, I28: switching a scope off takes its events along",
        tests=(MACHINE,),
    ),
    Mutant(
        name="completed-without-a-word",
        file="core/lifecycle.py",
        old='change = ended(scope, event, reason="", now=now)',
        new="change = Change(scope=ended(scope, event, reason='', now=now).scope)",
        breaks="I19, I29: an event leaves the document and no record says why",
        tests=(MACHINE,),
    ),
    Mutant(
        name="started-event-outlives-its-vm",
        file="core/membership.py",
        old="        if name not in event.resources:\n",
        new="        if name not in event.resources or event.started_at is not None:\n",
        breaks="I9, I19: what has started goes on for a VM that is gone, and for the next so named",
        tests=(CORE, FOUND),
    ),
)

_SERVICE: Final = (
    Mutant(
        name="foreign-scope-approved",
        file="service/events/approval.py",
        old="approve(tx, caller.scope_id, event_ids,",
        new="approve(tx, (tx.event([*event_ids][0]) or caller).scope_id, event_ids,",
        breaks="I9, I12: a VM approves an event of another scope",
        tests=(MACHINE,),
    ),
    Mutant(
        name="closed-ids-unknown",
        file="service/events/approval.py",
        old="closed=tx.closed(scope_id, [i for i in event_ids if i not in scope.events]),",
        new="closed=(),",
        breaks="I12, I13: approving an event that is over is refused",
        tests=(MACHINE,),
    ),
    Mutant(
        name="told-of-facts-only",
        file="service/engine.py",
        old="for listener in self._listeners:",
        new="for listener in self._listeners if commit.transitions else ():",
        breaks="I10, I25: a commit without a fact never reaches the Board",
        tests=(MACHINE,),
    ),
    Mutant(
        name="last-approval-not-noticed",
        file="service/engine.py",
        old="_AGREEMENTS: Final = (Approved, Canceled)",
        new="_AGREEMENTS: Final = (Canceled,)",
        breaks="I16: maintenance does not begin when the last scope approves",
        tests=(MACHINE,),
    ),
    Mutant(
        name="waker-keeps-its-timer",
        file="service/lifecycle/waker.py",
        old="if instant == self._set_for:",
        new="if self._set_for is not None:",
        breaks="I20: an event that falls due before the wake already set is late",
        tests=(MACHINE,),
    ),
    Mutant(
        name="board-goes-back",
        file="service/board.py",
        old="if shown is not None and shown.revision >= content.revision:",
        new="if shown is not None and shown.revision == content.revision:",
        breaks="I7, I25: a commit heard late puts an older document back",
        tests=(MACHINE,),
    ),
    Mutant(
        name="removal-not-noticed",
        file="service/fleet/writes.py",
        old="    save(tx, change, by=by)\n    return removed",
        new="    tx.save(change, by=by)\n    return removed",
        breaks="I16: maintenance does not begin when the last VM it waited for is removed",
        tests=(FOUND,),
    ),
)

_STORAGE: Final = (
    Mutant(
        name="rolled-back",
        file="storage/sqlite/group_commit.py",
        old='connection.execute("COMMIT")',
        new='connection.execute("ROLLBACK")',
        breaks="I14: a change is confirmed, and lost",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="group-half-told",
        file="storage/sqlite/group_commit.py",
        old="for call in group:\n                call.fail(error)",
        new="for call in group[:1]:\n                call.fail(error)",
        breaks="I14: a commit fails, and all callers but the first get a success",
        tests=(STORAGE,),
    ),
    Mutant(
        name="failed-function-stays",
        file="storage/sqlite/write_buffer.py",
        old='self._connection.execute("ROLLBACK TO running")',
        new="pass",
        breaks="I10, I15: writes of a refused function are committed with its group",
        tests=(STORAGE,),
    ),
    Mutant(
        name="failed-function-remembered",
        file="storage/sqlite/group_commit.py",
        old="        else:\n            self._cache.written(transaction.written)",
        new="        self._cache.written(transaction.written)",
        breaks="I10, I25: the next function builds on a scope that is not in the database",
        tests=(STORAGE,),
    ),
    Mutant(
        name="failed-commit-remembered",
        file="storage/sqlite/group_commit.py",
        old="            self._cache.forget()\n",
        new="",
        breaks="I10, I14: functions go on from what a failed commit would have left",
        tests=(STORAGE,),
    ),
    Mutant(
        name="rows-lost-unnoticed",
        file="storage/sqlite/write_buffer.py",
        old="self._is_lost = True",
        new="pass",
        breaks="I14: rows of finished functions are lost, and their callers get 200",
        tests=(STORAGE,),
    ),
    Mutant(
        name="asked-before-written",
        file="storage/sqlite/write_buffer.py",
        old="        self.write()\n        return self._connection",
        new="        return self._connection",
        breaks="I10, I25: a function does not see what another of its group has written",
        tests=(STORAGE,),
    ),
    Mutant(
        name="saves-out-of-order",
        file="storage/sqlite/write_buffer.py",
        old="if scope_id in self._own.scopes:",
        new="if not scope_id:",
        breaks="I14, I19: what an event was overwrites what has become of it",
        tests=(STORAGE,),
    ),
    Mutant(
        name="history-row-missing",
        file="storage/sqlite/writes.py",
        old="diff.history(change.transitions, by=by",
        new="delta.history(change.transitions[-1:], by=by",
        breaks="I29: of several facts of one change only the last is recorded",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="event-row-lost",
        file="storage/sqlite/writes.py",
        old="for record in difference.records:",
        new="for record in difference.records[:1]:",
        breaks="I14, I19: of several events of one change only the first is kept",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="approval-forgotten",
        file="storage/rows.py",
        old="None if approval is None else micros(approval.at),",
        new="None,",
        breaks="I14, I23: an approval does not survive",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="closed-in-any-scope",
        file="storage/sqlite/reads.py",
        old="AND scope_id = ? AND ended_at IS NOT NULL",
        new="AND (scope_id = ? OR TRUE) AND ended_at IS NOT NULL",
        breaks="I9, I12: an event of another scope that is over is known here",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="id-used-again",
        file="storage/sqlite/writes.py",
        old="if self.event(event_id) is not None:",
        new="if self._one('SELECT 1 FROM events WHERE id = ? AND ended_at IS NULL', event_id):",
        breaks="I18: an event takes the id, and the record, of one that is over",
        tests=(IN_SQLITE,),
    ),
    Mutant(
        name="half-a-transaction",
        file="storage/memory.py",
        old="contents = self._contents.copy()",
        new="contents = self._contents",
        breaks="I10, I15: what a refused transaction has written stays",
        tests=(STORAGE,),
    ),
)

_METADATA: Final = (
    Mutant(
        name="field-too-early",
        file="metadata/wire.py",
        old="if version.has_source:",
        new="if version.has_description:",
        breaks="I11: EventSource is shown in an api-version that has none",
        tests=(MACHINE,),
    ),
)

_AGENT: Final = (
    Mutant(
        name="sdk-trusts-anybody",
        file="client/_http.py",
        old='if endpoint.startswith("https:"):\n        return True',
        new='if endpoint.startswith("https:"):\n        return False',
        breaks="S16: the SDK sends its VM's name and approvals to any server over TLS",
        tests=("tests/client/test_tls.py",),
    ),
    Mutant(
        name="hooks-trust-anybody",
        file="agent/targets/http.py",
        old="if ca_file is None:\n        return True",
        new="if ca_file is None:\n        return False",
        breaks="S16: the agent's calls, with their tokens, go to whatever answers over TLS",
        tests=("tests/agent/hooks/test_http.py",),
    ),
    Mutant(
        name="journal-not-flushed",
        file="agent/journal.py",
        old="written = os.write(self._file, line)\n            os.fsync(self._file)",
        new="written = os.write(self._file, line)",
        breaks="I30: what has begun is not on disk, and runs again once the power is back",
        tests=("tests/agent/test_journal.py",),
    ),
)

_PROCESSES: Final = (
    Mutant(
        name="child-outlives-supervisor",
        file="runtime/child_process.py",
        old="ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)",
        new="pass",
        breaks="I23: a busy child goes on without its supervisor, beside its own successor",
        tests=("tests/runtime/test_child_process.py",),
    ),
    Mutant(
        name="sleep-does-not-count",
        file="clock.py",
        old='getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)',
        new="time.CLOCK_MONOTONIC",
        breaks="I20: events are late by as long as the machine was suspended",
        # Needs a time namespace: who may have none skips it, and learns nothing.
        tests=("tests/test_clock_asleep.py",),
    ),
    Mutant(
        name="answered-before-told",
        file="feed/sync.py",
        old='if message["type"] == "http.response.start":\n                await feed.sync()',
        new='if message["type"] == "http.response.end":\n                await feed.sync()',
        breaks="I25: a change is answered, and a VM that polls then does not see it",
        tests=("tests/feed/test_sync.py",),
    ),
    Mutant(
        name="polls-not-asked-for",
        file="feed/sync.py",
        old='if scope["method"] in _READING:\n            await feed.sync()',
        new='if scope["method"] in _READING:\n            pass',
        breaks="I28: a VM that has just read is said not to have",
        tests=("tests/feed/test_sync.py",),
    ),
    Mutant(
        name="store-from-the-future",
        file="runtime/startup.py",
        old="_LONGEST_LEAD: Final = timedelta(minutes=5)",
        new="_LONGEST_LEAD: Final = timedelta(days=5)",
        breaks="I20: real time waits for days for a store that is ahead, and nothing starts",
        tests=("tests/runtime/test_single_process.py",),
    ),
)

_EDGES: Final = (
    Mutant(
        name="console-in-a-frame",
        file="console/rendering.py",
        old=" frame-ancestors 'none';",
        new="",
        breaks="S13: another site can put the console into a frame, and have it clicked",
        tests=("tests/console/test_console_app.py",),
    ),
    Mutant(
        name="log-line-forged",
        file="runtime/logs.py",
        old="{name}={json.dumps(value, default=str)}",
        new="{name}={value}",
        breaks="S14: a name with a line's end in it writes a line of its own",
        tests=("tests/runtime/test_logs.py",),
    ),
    Mutant(
        name="log-message-forged",
        file="runtime/logs.py",
        old="{_escaped(record.getMessage())}",
        new="{record.getMessage()}",
        breaks="S14: what a library quotes in its message writes a line of its own",
        tests=("tests/runtime/test_logs.py",),
    ),
)

MUTANTS: Final = (
    *_RULES,
    *_SERVICE,
    *_STORAGE,
    *_METADATA,
    *_AGENT,
    *_PROCESSES,
    *_EDGES,
)
