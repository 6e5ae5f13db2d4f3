"""Time is an argument: who has a clock, who measures real time, and who waits for it."""

import re

from tests.source_tree import SRC, imports, modules

# Who may measure real time without being given a clock, and what for.
MEASURES_REAL_TIME = {
    "clock.py": "it is the clock",
    "client/_clock.py": "it is the SDK's clock",
    "control/v1/event_waits.py": "how long a client waits for an event",
    "feed/remote.py": "how long the writer takes to answer",
    "metadata/server.py": "deadlines of connections, unless it is given a clock",
    "runtime/admission.py": "hands the event loop's time to those who need it",
    "runtime/assembly.py": "when an event's id was made",
    "runtime/listeners/acceptor.py": "how often the log may say that a listener is full",
    "runtime/listeners/conversation.py": "how long a client takes to send a request",
    "scenarios/scenario_observer.py": "how long a handler takes",
    "storage/postgres/commits/outcome.py": "how long an outcome may stay unknown",
    "storage/postgres/commits/session.py": "how soon a failed connection is tried again",
    "storage/sqlite/group_commit.py": "how long one commit may gather transactions",
}
# Which modules of the core, the service and the agent wait in real time, and what for.
WAITS_IN_REAL_TIME = {
    "agent/assembly.py": "when the VM's name is asked for again",
    "agent/event_loop.py": "when a document that was not to be had is asked for again",
    "agent/event_worker.py": "as long as its plan says, which is given the time",
    "agent/hooks/haproxy.py": "how often sessions are counted, and how long HAProxy may take",
    "agent/hooks/kubernetes.py": "how often pods are looked at",
    "agent/hooks/postgresql.py": "how often a cluster is looked at",
    "agent/hooks/retries.py": "how long a hook and a check may take, and when it tries again",
    "agent/hooks/run.py": "how long a hook may take",
    "agent/readiness/heartbeat.py": "how often readiness is told and read",
    "agent/readiness/kubernetes.py": "how long a cluster may take to answer",
    "agent/readiness/server.py": "how long the server may take to answer",
    "agent/status/listener.py": "how long a client takes to send a request",
    "service/history/keeper.py": "how often rows are chained and removed; their age is by the clock",
}


def test_no_module_has_a_clock_of_its_own() -> None:
    clocks = r"\btime\.(time|monotonic|perf_counter|clock_gettime)(_ns)?\b"
    own = rf"\b\w*loop(\(\))?\.time\b|{clocks}"
    readers = {
        str(module.relative_to(SRC))
        for module in modules("src")
        if re.search(own, module.read_text())
    }

    assert readers == MEASURES_REAL_TIME.keys()


def test_the_service_is_given_its_clocks() -> None:
    names = {
        (module.name, name)
        for module in modules("src/forewarned/core", "src/forewarned/service")
        for name in imports(module)
        if name in {"forewarned.clock", "time"}
    }

    assert names == set()


def test_core_service_and_agent_wait_in_real_time_only_where_they_say() -> None:
    waiting = (
        r"\basyncio\.(sleep|timeout|timeout_at|wait_for)\b|\.call_(later|at)\("
        r"|\basyncio\.wait\([^)]*timeout=|from asyncio import"
    )
    waiters = {
        str(module.relative_to(SRC))
        for module in modules(*(f"src/forewarned/{part}" for part in ("core", "service", "agent")))
        if re.search(waiting, module.read_text())
    }

    assert waiters == WAITS_IN_REAL_TIME.keys()


def test_only_the_assembly_of_the_agent_reads_a_clock() -> None:
    """Time comes to the rest of it as an argument."""
    agent = {
        str(module.relative_to(SRC))
        for module in modules("src/forewarned/agent")
        if "forewarned.clock" in set(imports(module))
        or re.search(r"loop(\(\))?\.time\(", module.read_text())
    }

    assert agent == {"agent/assembly.py"}
