"""Every expectation, by what was seen: a table, and the law that what is decided stays decided."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.core.ids import EventId
from forewarned.scenarios.expectations import judge
from forewarned.scenarios.model import Probe
from forewarned.scenarios.observations import (
    START,
    Fact,
    HandlerExited,
    HandlerPrinted,
    Observation,
    Probed,
    StepEnded,
)
from forewarned.scenarios.report import Finding, Standing
from tests.scenarios.builders import EVENT, a_scenario, approval, at, read, step

HELD, BROKEN, OPEN, UNREACHED = (
    Standing.HELD,
    Standing.BROKEN,
    Standing.OPEN,
    Standing.UNREACHED,
)
OTHER = EventId("B" * 8 + "-0000-4000-8000-000000000000")
SCHEDULED = step(1, 0, EVENT)
LATER = step(5, 1)
FILE = Probe(file="x")

APPROVED = 'that = "approved"\nevent = "reboot"\nwithin = "5s"'
NOT_APPROVED = 'that = "not_approved"\nevent = "reboot"'
ONCE = 'that = "approved_once"\nevent = "reboot"'
AFTER_PROBE = 'that = "approved_after_probe"\nevent = "reboot"\nprobe = { file = "x" }'
ASKED = 'that = "asked"\nafter = "reboot"\n'
HEADER = 'that = "sent_header"\nheader = "Metadata"\nvalue = "True"'
BACKED_OFF = 'that = "backed_off"\nstatus = 429\nat_least = "2s"'
RECOVERED = 'that = "recovered"\nafter = "later"\nwithin = "5s"'
EXITED = 'that = "exited"\ncode = 3\nafter = "reboot"\nwithin = "5s"'
PRINTED = 'that = "printed"\ntext = "drained"\nafter = "reboot"\nwithin = "5s"'
PROBE = 'that = "probe"\nprobe = { file = "x" }\nafter = "reboot"\nwithin = "5s"'


def found(
    expect: str, *seen: Observation, now: float, is_over: bool = False, patience: float = 1
) -> Finding:
    [finding] = judge(
        a_scenario(expect),
        seen,
        now=timedelta(seconds=now),
        is_over=is_over,
        patience=patience,
    )
    return finding


def exit_with(code: int, *, was_asked: bool = False) -> HandlerExited:
    return HandlerExited(code=code, was_asked=was_asked)


CASES: dict[str, tuple[str, list[Observation], float, Standing]] = {
    "no event yet": (APPROVED, [], 3, OPEN),
    "approved in time": (APPROVED, [at(4, approval())], 4, HELD),
    "not yet approved": (APPROVED, [at(4, read())], 4, OPEN),
    "never approved": (APPROVED, [at(4, read())], 6, BROKEN),
    "approved late": (APPROVED, [at(7, approval())], 7, BROKEN),
    "approval failed": (APPROVED, [at(4, approval(500))], 6, BROKEN),
    "approved after failing": (APPROVED, [at(3, approval(500)), at(4, approval())], 4, HELD),
    "another approved": (APPROVED, [at(4, approval(event_id=OTHER))], 6, BROKEN),
    "approved by another VM": (
        APPROVED,
        [at(4, read(vm="other", approves=(EVENT,)))],
        6,
        BROKEN,
    ),
    "not approved so far": (NOT_APPROVED, [at(4, read())], 4, OPEN),
    "approved against hope": (NOT_APPROVED, [at(4, approval(500))], 4, BROKEN),
    "not approved before": (f'{NOT_APPROVED}\nuntil = "later"', [*LATER], 5, HELD),
    "approved afterwards": (
        f'{NOT_APPROVED}\nuntil = "later"',
        [*LATER, at(6, approval())],
        6,
        HELD,
    ),
    "approved before": (
        f'{NOT_APPROVED}\nuntil = "later"',
        [at(4, approval()), *LATER],
        6,
        BROKEN,
    ),
    "approved once": (ONCE, [at(2, approval())], 3, OPEN),
    "approved again": (ONCE, [at(2, approval()), at(3, approval(400))], 3, BROKEN),
    "tried again after an error": (ONCE, [at(2, approval(500)), at(3, approval())], 3, OPEN),
    "the probe held": (
        AFTER_PROBE,
        [at(2, approval()), at(2, Probed(probe=FILE, holds=True, approval=(EVENT,)))],
        2,
        HELD,
    ),
    "the probe did not hold": (
        AFTER_PROBE,
        [at(2, approval()), at(2, Probed(probe=FILE, holds=False, approval=(EVENT,)))],
        2,
        BROKEN,
    ),
    "the probe of another approval": (
        AFTER_PROBE,
        [at(2, Probed(probe=FILE, holds=False, approval=(OTHER,)))],
        2,
        OPEN,
    ),
    "asked often enough": (f"{ASKED}at_least = 2", [at(2, read()), at(3, read())], 3, HELD),
    "asked too rarely": (
        f'{ASKED}at_least = 3\nwithin = "4s"',
        [at(2, read()), at(3, read())],
        5,
        BROKEN,
    ),
    "asked too often": (
        f'{ASKED}at_most = 1\nwithin = "4s"',
        [at(2, read()), at(3, read())],
        3,
        BROKEN,
    ),
    "asked rarely enough": (
        f'{ASKED}at_most = 1\nwithin = "4s"',
        [at(2, read()), at(6, read())],
        6,
        HELD,
    ),
    "still asks rarely enough": (f'{ASKED}at_most = 1\nwithin = "4s"', [at(2, read())], 3, OPEN),
    "asked before that does not count": (f"{ASKED}at_least = 1", [at(0.5, read())], 3, OPEN),
    "waited after 429": (BACKED_OFF, [at(2, read(429)), at(4, read())], 4, OPEN),
    "asked at once after 429": (BACKED_OFF, [at(2, read(429)), at(3, read())], 4, BROKEN),
    "a timer that is a little early": (BACKED_OFF, [at(2, read(429)), at(3.98, read())], 4, OPEN),
    "the header in any letter case": (HEADER, [at(2, read())], 2, OPEN),
    "no header": (HEADER, [at(2, read(400, headers=()))], 2, BROKEN),
    "another value": (HEADER, [at(2, read(headers=(("metadata", "1"),)))], 2, BROKEN),
    "no proxy": ('that = "not_proxied"', [at(2, read())], 2, OPEN),
    "through a proxy": (
        'that = "not_proxied"',
        [at(2, read(400, target="http://169.254.169.254/metadata/scheduledevents"))],
        2,
        BROKEN,
    ),
    "forwarded": ('that = "not_proxied"', [at(2, read(headers=(("via", "1.1 x"),)))], 2, BROKEN),
    "a new version": ('that = "used_version"\nat_least = "2019-01-01"', [at(2, read())], 2, OPEN),
    "no version": ('that = "used_version"', [at(2, read(400, target="/metadata/scheduledevents"))], 2, BROKEN),
    "a version too old": (
        'that = "used_version"\nat_least = "2019-01-01"',
        [at(2, read(target="/metadata/scheduledevents?api-version=2017-03-01"))],
        2,
        BROKEN,
    ),
    "no such answer": ('that = "not_answered"\nstatus = 400', [at(2, read())], 2, OPEN),
    "such an answer": ('that = "not_answered"\nstatus = 400', [at(2, read(400))], 2, BROKEN),
    "recovered": (RECOVERED, [*LATER, at(6, read(500)), at(7, read())], 7, HELD),
    "read before only": (RECOVERED, [at(4, read()), *LATER], 10, BROKEN),
    "recovers": (RECOVERED, [*LATER, at(6, read(500))], 9, OPEN),
    "exited as expected": (EXITED, [at(3, exit_with(3))], 3, HELD),
    "exited otherwise": (EXITED, [at(3, exit_with(-15))], 3, BROKEN),
    "did not exit": (EXITED, [], 6, BROKEN),
    "still runs": ('that = "running"', [], 3, OPEN),
    "was ended": ('that = "running"', [at(3, exit_with(-9, was_asked=True))], 3, OPEN),
    "ended": ('that = "running"', [at(3, exit_with(0))], 3, BROKEN),
    "printed": (PRINTED, [at(3, HandlerPrinted(line="all drained."))], 3, HELD),
    "printed nothing": (PRINTED, [], 6, BROKEN),
    "printed too early": (PRINTED, [at(0, HandlerPrinted(line="drained"))], 5.9, OPEN),
    "printed against hope": (
        'that = "not_printed"\ntext = "Traceback"',
        [at(3, HandlerPrinted(line="Traceback (most recent", is_error=True))],
        3,
        BROKEN,
    ),
    "the probe holds": (PROBE, [at(3, Probed(probe=FILE, holds=True))], 3, HELD),
    "the probe never holds": (PROBE, [at(3, Probed(probe=FILE, holds=False))], 6, BROKEN),
    "no probe": (
        'that = "no_probe"\nprobe = { file = "x" }',
        [at(3, Probed(probe=FILE, holds=False))],
        6,
        OPEN,
    ),
    "a probe against hope": (
        'that = "no_probe"\nprobe = { file = "x" }',
        [at(3, Probed(probe=FILE, holds=True))],
        6,
        BROKEN,
    ),
}  # fmt: skip

# What is open until the end, and then held.
AT_END = {
    "not approved so far", "approved once", "tried again after an error", "waited after 429",
    "a timer that is a little early", "the header in any letter case", "no proxy",
    "a new version", "no such answer", "still runs", "was ended", "no probe",
    "still asks rarely enough",
}  # fmt: skip
NEVER_KNOWN = {"no event yet", "not yet approved", "recovers", "printed too early"}
BROKEN_THEN = {"the probe of another approval", "asked before that does not count"}


@pytest.mark.parametrize("name", CASES)
def test_an_expectation_by_what_was_seen(name: str) -> None:
    expect, seen, now, standing = CASES[name]
    before = [] if name == "no event yet" else SCHEDULED
    observations = sorted([*before, *seen], key=lambda each: each.at)

    finding = found(expect, *observations, now=now)

    assert finding.standing is standing
    assert bool(finding.why) == (standing is BROKEN)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][3] is OPEN])
def test_at_the_end_nothing_is_open(name: str) -> None:
    expect, seen, now, _ = CASES[name]
    before = [] if name == "no event yet" else SCHEDULED
    observations = sorted([*before, *seen], key=lambda each: each.at)

    finding = found(expect, *observations, now=now, is_over=True)

    if name in AT_END:
        assert finding.standing is HELD
    elif name in NEVER_KNOWN:
        assert finding.standing is UNREACHED
    else:
        assert name in BROKEN_THEN
        assert finding.standing is BROKEN


def test_an_open_finding_says_when_it_will_be_known_at_the_latest() -> None:
    assert found(APPROVED, *SCHEDULED, now=2).decided_by == timedelta(seconds=6)
    assert found(APPROVED, *SCHEDULED, now=2, patience=3).decided_by == timedelta(seconds=16)


def test_patience_gives_a_slow_handler_more_time_and_a_quick_one_no_more_requests() -> None:
    late = (*SCHEDULED, at(7, approval()))
    often = (*SCHEDULED, at(7, read()), at(8, read()))

    assert found(APPROVED, *late, now=7, patience=2).standing is HELD
    # But not more than there is.
    limited = f'{APPROVED}\nlimit = "5s"'
    assert found(limited, *late, now=7, patience=2).standing is BROKEN
    assert found(f'{ASKED}at_most = 1\nwithin = "5s"', *often, now=8, patience=9).standing is HELD


def test_a_broken_expectation_says_what_was_seen_instead() -> None:
    refused = found(APPROVED, *SCHEDULED, at(2, approval(400)), now=6)
    late = found(APPROVED, *SCHEDULED, at(7.5, approval()), now=8)
    silent = found(APPROVED, *SCHEDULED, now=6)

    assert refused.why.startswith("its approval failed: POST /metadata/scheduledevents")
    assert late.why == "the approval came after 6s500ms"
    assert silent.why == "no approval was sent; the handler has sent no request since"


def test_an_approval_that_was_granted_is_not_called_a_failure() -> None:
    """Of several events that one step makes, one may be approved and another not."""
    both = step(1, 0, EVENT, OTHER)

    one = found(APPROVED, *both, at(2, approval()), now=6)
    refused = found(APPROVED, *both, at(2, approval(400, OTHER)), at(3, approval()), now=6)

    assert one.standing is BROKEN
    assert one.why.startswith("it approved 1 of 2 events; since then it sent 1 request")
    assert refused.why.startswith("its approval failed: POST /metadata/scheduledevents")
    assert refused.why.endswith("→ 400")


def test_a_step_that_failed_is_the_first_finding() -> None:
    failed = at(2, StepEnded(index=1, failure="there is no such event"))
    start = at(2, StepEnded(index=START, failure="it exited with code 1"))
    scenario = a_scenario(APPROVED)

    first, second = judge(scenario, [failed], now=timedelta(seconds=3), is_over=True)
    begun, _ = judge(scenario, [start], now=timedelta(seconds=3), is_over=True)

    assert (first.title, first.why) == ("the step later can be played", "there is no such event")
    assert second.standing is UNREACHED
    assert begun.title == "the handler starts and reads its document"


FACTS: st.SearchStrategy[Fact] = st.sampled_from(
    [
        read(),
        read(429),
        read(500, headers=()),
        read(None),
        approval(),
        approval(500),
        approval(event_id=OTHER),
        HandlerPrinted(line="drained"),
        exit_with(3),
        Probed(probe=FILE, holds=True),
        Probed(probe=FILE, holds=False),
        Probed(probe=FILE, holds=True, approval=(EVENT,)),
    ]
)
EXPECTATIONS = sorted({expect for expect, *_ in CASES.values()})


@given(
    expect=st.sampled_from(EXPECTATIONS),
    facts=st.lists(st.tuples(st.floats(0, 20), FACTS), max_size=8),
    moments=st.lists(st.floats(0, 30), min_size=2, max_size=2).map(sorted),
    patience=st.sampled_from([1, 2]),
)
def test_what_is_decided_stays_decided(
    expect: str, facts: list[tuple[float, Fact]], moments: list[float], patience: float
) -> None:
    """Whatever else is seen afterwards, and however late one looks."""
    told = [*SCHEDULED, *LATER, *(at(seconds, fact) for seconds, fact in facts)]
    told.sort(key=lambda each: each.at)
    sooner, later = (
        found(
            expect,
            *(each for each in told if each.at <= timedelta(seconds=moment)),
            now=moment,
            patience=patience,
        )
        for moment in moments
    )

    assert sooner.standing in {OPEN, later.standing}
