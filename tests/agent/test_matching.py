"""Which rule an event falls under. The first that matches is the one."""

from datetime import datetime, time, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.agent.config.rules import EventSource, EventType, Hours, Rule
from forewarned.agent.config.settings import AgentSettings, AgentTable
from forewarned.agent.hooks.command import CommandHook
from forewarned.agent.matching import NO_PLAN, matches, plan_for
from forewarned.agent.model import Approve, Leader, Plan, Sighting, Step
from tests.builders import NOON

MINUTE = timedelta(minutes=1)


def an_event(
    *,
    type: str = "Reboot",
    source: str = "Platform",
    resources: tuple[str, ...] = ("web_0",),
    duration: timedelta | None = None,
) -> Sighting:
    return Sighting(
        event_id="A",
        type=type,
        source=source,
        resources=resources,
        not_before=NOON,
        duration=duration,
    )


def settings_of(*rules: Rule, **hooks: CommandHook) -> AgentSettings:
    return AgentSettings(
        path=Path("agent.toml"), agent=AgentTable(), hooks=MappingProxyType(hooks), rules=rules
    )


def test_the_first_rule_that_matches_is_the_one() -> None:
    settings = settings_of(
        Rule(name="freezes", type=(EventType.FREEZE,)),
        Rule(name="reboots", type=(EventType.REBOOT,)),
        Rule(name="all"),
    )

    assert plan_for(settings, an_event(type="Reboot"), NOON).rule == "reboots"
    assert plan_for(settings, an_event(type="reboot"), NOON).rule == "reboots"
    assert plan_for(settings, an_event(type="Terminate"), NOON).rule == "all"


def test_an_event_that_no_rule_is_for_is_neither_prepared_for_nor_approved() -> None:
    settings = settings_of(Rule(name="freezes", type=(EventType.FREEZE,)))

    plan = plan_for(settings, an_event(), NOON)

    assert plan == NO_PLAN
    assert plan.approve is Approve.NEVER
    assert plan.prepare == plan.recover == ()


def test_a_type_that_nobody_knew_yet_falls_to_a_rule_that_asks_for_none() -> None:
    settings = settings_of(Rule(name="known", type=tuple(EventType)), Rule(name="rest"))

    assert plan_for(settings, an_event(type="Blackout"), NOON).rule == "rest"


def test_a_plan_is_made_of_what_hooks_say_of_themselves() -> None:
    drain = CommandHook(
        argv=("drain",), undo_argv=("undrain",), timeout=MINUTE, expected=MINUTE / 2, cut=3
    )
    tell = CommandHook(argv=("tell",), required=False)
    rule = Rule(
        name="r",
        prepare=("drain",),
        recover=("tell",),
        approve=Approve.ALWAYS,
        leader=Leader.FIRST_RESOURCE,
    )

    assert plan_for(settings_of(rule, drain=drain, tell=tell), an_event(), NOON) == Plan(
        rule="r",
        prepare=(Step(name="drain", timeout=MINUTE, expected=MINUTE / 2, cut=3, has_undo=True),),
        recover=(Step(name="tell", timeout=tell.timeout, required=False),),
        approve=Approve.ALWAYS,
        leader=Leader.FIRST_RESOURCE,
    )


@pytest.mark.parametrize(
    ("rule", "event", "is_match"),
    [
        (Rule(name="r", source=EventSource.USER), an_event(source="User"), True),
        (Rule(name="r", source=EventSource.USER), an_event(source="Platform"), False),
        # Old api-versions don't say who wants it.
        (Rule(name="r", source=EventSource.USER), an_event(source=""), False),
        (Rule(name="r", max_duration=MINUTE), an_event(duration=MINUTE), True),
        (Rule(name="r", max_duration=MINUTE), an_event(duration=2 * MINUTE), False),
        (Rule(name="r", max_duration=MINUTE), an_event(duration=None), False),
        (Rule(name="r", min_duration=MINUTE), an_event(duration=MINUTE), True),
        (Rule(name="r", min_duration=MINUTE), an_event(duration=MINUTE / 2), False),
        (Rule(name="r", min_duration=MINUTE), an_event(duration=None), False),
        (Rule(name="r", resources=("web_*",)), an_event(resources=("db_0", "WEB_1")), True),
        (Rule(name="r", resources=("api", "web_?")), an_event(resources=("web_1",)), True),
        (Rule(name="r", resources=("web_?",)), an_event(resources=("web_10",)), False),
    ],
)
def test_a_rule_is_for_what_it_asks_for(rule: Rule, event: Sighting, is_match: bool) -> None:
    assert matches(rule, event, NOON) is is_match
    assert not rule.takes_all


# --- the time of day -----------------------------------------------------------------------------

_MINUTES = st.integers(0, 24 * 60 - 1)


@st.composite
def hours(draw: st.DrawFn) -> Hours:
    begin = draw(_MINUTES)
    return Hours(begin, draw(st.integers(0, 24 * 60).filter(lambda end: end != begin)))


@given(hours(), st.times())
def test_a_minute_is_in_a_part_of_the_day_iff_walking_from_its_begin_gets_there_first(
    part: Hours, moment: time
) -> None:
    minute = moment.hour * 60 + moment.minute
    day = 24 * 60
    length = (part.end - part.begin) % day or day

    assert part.has(moment) == ((minute - part.begin) % day < length)


@given(hours(), st.times())
def test_a_part_of_the_day_and_the_rest_of_it_share_no_minute_and_leave_none_out(
    part: Hours, moment: time
) -> None:
    if part == Hours(0, 24 * 60):
        assert part.has(moment)
        return
    rest = Hours(part.end % (24 * 60), part.begin or 24 * 60)

    assert part.has(moment) != rest.has(moment)


@given(hours())
def test_a_part_of_the_day_is_read_back_as_it_is_written(part: Hours) -> None:
    assert Hours.parse(str(part)) == part


@given(st.datetimes())
def test_a_rule_for_a_part_of_the_day_goes_by_local_time(now: datetime) -> None:
    rule = Rule(name="night", between=Hours.parse("22:00-06:00"))

    assert matches(rule, an_event(), now) == (now.hour >= 22 or now.hour < 6)


@pytest.mark.parametrize(
    "text", ["22-6", "22:00", "22:00-22:00", "24:00-06:00", "22:60-06:00", "00:00-24:01", "", "a-b"]
)
def test_what_is_no_part_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time range|minutes go from"):
        Hours.parse(text)
