"""Mutants of what faces the outside: the listeners, the agent, and the processes."""

from typing import Final

from tools.mutants.mutant import Mutant

MACHINE: Final = "tests/stateful/test_machine.py"

_METADATA: Final = (
    Mutant(
        name="field-too-early",
        file="service/events/api_versions.py",
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
        file="targets/http.py",
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

_CONTROL: Final = (
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

EDGES: Final = (*_METADATA, *_AGENT, *_PROCESSES, *_CONTROL)
