"""The rows that one save of a scope writes, each with its statement.

A copy shares unchanged parts with its original. So a part that is not the same object is taken for
changed: it may be written needlessly, and is never left out. Invariant: no two rows are about the
same columns of the same row of a table, but for a VM that is added and has its place at once.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from forewarned.core.change import Change
from forewarned.core.copying import replace
from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor, Scope
from forewarned.service.records import Binding, Saved
from forewarned.storage import rows
from forewarned.storage.diff import Delta, fold
from forewarned.storage.relational.statements import (
    ADD_EVENT,
    ADD_HISTORY,
    ADD_RESOURCE,
    END_EVENT,
    MODEL_RESOURCE,
    MOVE_EVENT,
    MOVE_RESOURCE,
    MOVE_SCOPE,
    PLACE_RESOURCE,
    PLAN_SCOPE,
    WORD_EVENT,
    Statement,
)
from forewarned.storage.rows import Row

Written = tuple[Statement, Row]


def of_scope(before: Scope, saved: Saved, *, next_wake: datetime | None) -> Iterator[Written]:
    scope = saved.scope
    if (
        scope.policy is not before.policy
        or scope.rounds is not before.rounds
        or scope.kind is not before.kind
    ):
        yield PLAN_SCOPE, rows.scope_plan(scope)
    yield MOVE_SCOPE, rows.scope_state(saved, next_wake=next_wake)


def of_resources(
    before: Scope, difference: Delta, *, first: int, joining: Mapping[ResourceName, Binding]
) -> Iterator[Written]:
    """VMs that are added have the positions from `first` on, and `joining` are their bindings."""
    scope_id = difference.scope.id
    for position, vm in enumerate(difference.added, start=first):
        binding = joining.get(vm.name)
        yield ADD_RESOURCE, rows.new_resource(vm, scope_id, position=position, binding=binding)
    for position, name in enumerate(difference.order):
        yield PLACE_RESOURCE, (position, fold(name))
    for vm in difference.changed:
        former = before.resources[vm.name]
        if former.state is not vm.state:
            yield MOVE_RESOURCE, rows.resource_state(vm)
        if replace(former, state=vm.state) != vm:
            yield MODEL_RESOURCE, rows.resource_model(vm)


def of_events(before: Scope, difference: Delta) -> Iterator[Written]:
    for record in difference.records:
        event = record.event
        former = before.events.get(event.id)
        if former is None:
            yield ADD_EVENT, rows.new_event(record)
            continue
        if (
            event.resources is not former.resources
            or event.description is not former.description
            or event.duration is not former.duration
            or event.announced is not former.announced
        ):
            yield WORD_EVENT, rows.event_words(event)
        if record.ended_at is None:
            yield MOVE_EVENT, rows.event_state(event)
        else:
            yield END_EVENT, rows.event_end(record)


def of_history(change: Change, by: Actor) -> list[Written]:
    return [(ADD_HISTORY, rows.from_fact(fact, by)) for fact in change.transitions]
