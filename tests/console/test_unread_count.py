"""The number of scopes that no VM reads, which is kept while nothing changes it."""

from functools import partial

import pytest

from forewarned.clock import SystemClock
from forewarned.console.unread_count import UnreadCount
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.rules import Rules
from forewarned.core.transitions import (
    Activated,
    Deactivated,
    PolicyChanged,
    ResourceAdded,
    ResourceRemoved,
    Transition,
    action,
)
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit
from forewarned.storage import SqliteStore
from tests.builders import NOON
from tests.console.console_client import ConsoleClient
from tests.console.pages.test_home import tile

SCOPE = ScopeId("vm/web")
WEB = ResourceName("web")
MOVES = [
    Activated(scope_id=SCOPE, at=NOON),
    Deactivated(scope_id=SCOPE, at=NOON),
    ResourceAdded(scope_id=SCOPE, at=NOON, resource=WEB),
    ResourceRemoved(scope_id=SCOPE, at=NOON, resource=WEB),
]


def a_row(fact: Transition) -> HistoryRow:
    return HistoryRow(
        id=1,
        at=NOON,
        actor="server",
        address="",
        action=action(fact),
        scope_id=SCOPE,
        event_id=None,
        event_type=None,
        resources=(),
        cause="",
    )


@pytest.fixture
def kept() -> UnreadCount:
    """7 scopes, as counted after all that is known."""
    store = SqliteStore(None, SystemClock(), next_wake=partial(lifecycle.next_wake, rules=Rules()))
    count = UnreadCount(Engine(store))
    count.keep(7, generation=count.generation)
    return count


@pytest.mark.parametrize("fact", MOVES, ids=action)
def test_it_is_counted_again_after_what_may_change_it(kept: UnreadCount, fact: Transition) -> None:
    kept.hear(Commit(transitions=(fact,)))

    assert kept.number is None


@pytest.mark.parametrize("fact", MOVES, ids=action)
def test_it_is_counted_again_after_what_another_node_changes(
    kept: UnreadCount, fact: Transition
) -> None:
    kept.hear_history([a_row(fact)])

    assert kept.number is None


def test_it_is_counted_again_if_changes_were_missed(kept: UnreadCount) -> None:
    kept.hear_gap()

    assert kept.number is None


def test_it_is_kept_while_other_things_change(kept: UnreadCount) -> None:
    fact = PolicyChanged(scope_id=SCOPE, at=NOON)

    kept.hear(Commit(transitions=(fact,)))
    kept.hear_history([a_row(fact)])

    assert kept.number == 7


def test_a_number_that_was_counted_before_a_change_is_not_kept_after_it(kept: UnreadCount) -> None:
    before = kept.generation
    kept.hear(Commit(transitions=(MOVES[0],)))

    kept.keep(7, generation=before)

    assert kept.number is None


async def test_the_overview_counts_a_scope_no_longer_once_a_vm_has_read(
    console: ConsoleClient,
) -> None:
    before = tile(await console.see("/"), "unread")

    await console.switch_on("web")
    after = tile(await console.see("/"), "unread")

    assert (before[0], after[0]) == ("5 scopes that no VM reads", "4 scopes that no VM reads")
