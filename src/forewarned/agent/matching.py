"""Which rule matches an event, and the plan it makes. Pure: the time of day is given."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from forewarned.agent.config.rules import Rule
from forewarned.agent.config.settings import AgentSettings
from forewarned.agent.hooks.kinds import HookTable
from forewarned.agent.model import Approve, Plan, Sighting, Step

NO_PLAN: Final = Plan(rule="", approve=Approve.NEVER)
"""For an event that no rule matches: the agent does nothing, and does not approve it."""


def plan_for(settings: AgentSettings, sighting: Sighting, now_local: datetime) -> Plan:
    """`now_local` is in the VM's time zone. The first rule that matches is the one."""
    for rule in settings.rules:
        if matches(rule, sighting, now_local):
            return plan_of(rule, settings.hooks)
    return NO_PLAN


def matches(rule: Rule, sighting: Sighting, now_local: datetime) -> bool:
    return (
        _is_among(sighting.type, rule.type)
        and (rule.source is None or sighting.source.lower() == rule.source.lower())
        and _has_its_duration(rule, sighting)
        and (not rule.resources or _names_one(sighting, rule.resources))
        and (rule.between is None or rule.between.has(now_local.time()))
    )


def plan_of(rule: Rule, hooks: Mapping[str, HookTable]) -> Plan:
    return Plan(
        rule=rule.name,
        prepare=tuple(_step(name, hooks[name]) for name in rule.prepare),
        recover=tuple(_step(name, hooks[name]) for name in rule.recover),
        approve=rule.approve,
        leader=rule.leader,
    )


def _step(name: str, hook: HookTable) -> Step:
    return Step(
        name=name,
        timeout=hook.timeout,
        required=hook.required,
        expected=hook.expected,
        cut=hook.cut,
        has_undo=hook.has_undo,
    )


def _is_among(type_: str, wanted: Iterable[str]) -> bool:
    names = [one.lower() for one in wanted]
    return not names or type_.lower() in names


def _has_its_duration(rule: Rule, sighting: Sighting) -> bool:
    if rule.min_duration is None and rule.max_duration is None:
        return True
    # An event of unknown duration may be a long one, so rules for short ones don't match.
    if sighting.duration is None:
        return False
    if rule.min_duration is not None and sighting.duration < rule.min_duration:
        return False
    return rule.max_duration is None or sighting.duration <= rule.max_duration


def _names_one(sighting: Sighting, patterns: Iterable[str]) -> bool:
    return any(
        fnmatchcase(name.lower(), pattern.lower())
        for pattern in patterns
        for name in sighting.resources
    )
