"""Following history in every store: from any position on, each row once and none left out."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Scope
from forewarned.core.transitions import Activated
from forewarned.service.errors import UnknownPositionError
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Snapshot, Store, Transaction
from tests.builders import OPERATOR, a_resource, a_scope, emptied
from tests.storage.store_calls import keep, save_in


async def write(store: Store, *causes: str) -> None:
    for cause in causes:
        await store.transact(partial(_note, cause=cause))


def _note(tx: Transaction, cause: str) -> None:
    tx.record("noted", by=OPERATOR, cause=cause)


def _note_several(tx: Transaction) -> None:
    for number in range(4):
        _note(tx, str(number))


async def position(store: Store) -> str:
    return await store.read(lambda snapshot: snapshot.position())


async def between(store: Store, since: str, upto: str, limit: int = 100) -> list[HistoryRow]:
    return await store.read(lambda s: s.history_between(since, upto, limit=limit))


async def test_what_was_written_between_two_positions_is_found_oldest_first(store: Store) -> None:
    await write(store, "before")
    since = await position(store)
    await write(store, "one", "two", "three")
    upto = await position(store)
    await write(store, "after")

    found = await between(store, since, upto)

    assert [row.cause for row in found] == ["one", "two", "three"]
    assert await between(store, upto, upto) == []


async def test_it_can_be_gone_on_from_each_row_and_in_pages_of_any_size(store: Store) -> None:
    since = await position(store)
    await store.transact(_note_several)
    await write(store, "4", "5")
    upto = await position(store)
    found = await between(store, since, upto)

    for limit in (1, 2, 3, 7):
        for start in range(len(found)):
            place, causes = found[start].position, []
            while page := await between(store, place, upto, limit):
                causes += [row.cause for row in page]
                place = page[-1].position
            assert causes == [row.cause for row in found[start + 1 :]]


@pytest.mark.parametrize("text", ["", "7", "deadbeef.1", "deadbeef.1:1:", "deadbeef.1:1:.2:2:.9"])
async def test_a_position_that_is_not_of_this_store_is_refused(store: Store, text: str) -> None:
    upto = await position(store)

    with pytest.raises(UnknownPositionError, match=r"another store|not an id"):
        await between(store, text, upto)


async def test_a_position_that_this_store_has_not_come_to_is_refused(store: Store) -> None:
    upto = await position(store)
    identity = upto.partition(".")[0]
    ahead = f"{identity}.9999999999:9999999999:" if ":" in upto else f"{identity}.9999999999"

    with pytest.raises(UnknownPositionError, match="has not reached that id"):
        await between(store, ahead, upto)


async def test_commits_say_the_numbers_of_their_rows(sole_store: Store) -> None:
    """Whatever else is written in them, and whoever fails beside them."""
    scopes = [emptied(a_scope(id=f"scope{number}")) for number in range(4)]
    await keep(sole_store, *scopes)

    def change(tx: Transaction, scope: Scope) -> None:
        tx.record("before", by=OPERATOR, cause="")
        fact = Activated(scope_id=scope.id, at=tx.now)
        save_in(tx, replace(scope, active=not scope.active), fact)
        tx.record("after", by=OPERATOR, cause="")
        save_in(tx, scope, fact)
        if scope is scopes[1]:
            raise RuntimeError("changed its mind")

    ended = await asyncio.gather(
        *(sole_store.transact(partial(change, scope=scope)) for scope in scopes),
        return_exceptions=True,
    )
    rows = await sole_store.read(lambda snapshot: snapshot.history(HistoryFilter()))
    actions = {row.id: (row.action, row.scope_id) for row in rows}

    commits = [each[1] for each in ended if not isinstance(each, BaseException)]
    assert len(commits) == 3
    for commit in commits:
        shown = [actions[number] for number in commit.history_ids]
        assert shown == [("activated", fact.scope_id) for fact in commit.transitions]
        assert len(shown) == 2


async def test_a_vm_that_has_left_its_scope_is_known_without_its_history(store: Store) -> None:
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2")])
    await keep(store, scope)
    await store.transact(lambda tx: save_in(tx, emptied(scope)))

    known = [
        await store.read(partial(_has_known, scope_id=scope_id, name=name))
        for scope_id, name in ((scope.id, "VM1"), (scope.id, "vm9"), (ScopeId("other"), "vm1"))
    ]

    assert known == [True, False, False]


def _has_known(snapshot: Snapshot, *, scope_id: ScopeId, name: str) -> bool:
    return snapshot.has_known(scope_id, ResourceName(name))
