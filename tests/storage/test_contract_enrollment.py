"""What every store promises about VMs that are added with their places, many at a time."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from forewarned.core import membership
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor, Scope
from forewarned.service.errors import AddressTakenError, NameTakenError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import Binding, Commit
from tests.builders import a_binding, a_resource, a_scope, emptied
from tests.storage.store_calls import keep, save

BY = Actor(name="file")
TWO = a_scope(resources=[a_resource("vm1"), a_resource("vm2")])
OTHER = a_scope(id="scope2", resources=[a_resource("vm3")])
VM1, VM2 = a_binding("vm1", address="10.0.0.1"), a_binding("vm2", address="10.0.0.2")
VM3 = a_binding("vm3", scope_id="scope2", address="10.0.0.3")


async def enroll(
    store: Store, scopes: Sequence[Scope], bindings: Sequence[Binding]
) -> tuple[list[ResourceName], Commit]:
    def decision(tx: Transaction) -> list[ResourceName]:
        changes: list[Change] = []
        for scope in scopes:
            if not tx.exists(scope.id):
                tx.create(emptied(scope))
            changes.append(membership.enroll(tx.load(scope.id), scope, now=tx.now))
        return tx.enroll(changes, bindings, by=BY)

    return await store.transact(decision)


async def test_vms_of_several_scopes_are_added_with_their_places(store: Store) -> None:
    """I29: each has one row of history."""
    names, commit = await enroll(store, [TWO, OTHER], [VM1, VM2, VM3])

    assert sorted(names) == ["vm1", "vm2", "vm3"]
    assert sorted(commit.bound, key=lambda each: each.name) == [VM1, VM2, VM3]
    assert await store.read(lambda s: list(s.bindings())) == [VM1, VM2, VM3]
    assert await store.read(lambda s: s.load(TWO.id).resources) == TWO.resources
    rows = await store.read(lambda s: s.history(HistoryFilter(limit=10)))
    assert sorted((row.action, row.resources, row.actor) for row in rows) == [
        ("resource_added", (name,), "file") for name in ("vm1", "vm2", "vm3")
    ]


async def test_vms_that_were_there_are_bound_with_those_that_are_new(store: Store) -> None:
    await enroll(store, [a_scope(resources=[a_resource("vm1")])], [VM1])
    moved = replace(VM1, address="10.0.0.9")

    names, commit = await enroll(store, [TWO], [moved, VM2])
    again, unchanged = await enroll(store, [TWO], [moved, VM2])

    assert sorted(names) == ["vm1", "vm2"]
    assert sorted(commit.bound, key=lambda each: each.name) == [moved, VM2]
    assert await store.read(lambda s: list(s.bindings())) == [moved, VM2]
    assert again == []
    assert unchanged.bound == ()
    assert unchanged.scopes == ()


async def test_a_vm_that_was_removed_comes_back_with_its_place(store: Store) -> None:
    await enroll(store, [TWO], [VM1, VM2])
    await save(store, a_scope(resources=[a_resource("vm1")]))

    names, commit = await enroll(store, [TWO], [VM1, VM2])

    assert names == ["vm2"]
    assert commit.bound == (VM2,)
    assert await store.read(lambda s: s.holder("10.0.0.2")) == "vm2"


async def test_a_name_that_another_scope_has_is_refused_with_all_of_it(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("VM3")]))

    with pytest.raises(NameTakenError, match="vm3"):
        await enroll(store, [a_scope(id="third", resources=[a_resource("vm4")]), OTHER], [VM3])

    assert await store.read(lambda s: list(s.bindings())) == []
    assert await store.read(lambda s: s.scope_ids("")) == ["scope1"]


async def test_a_name_in_two_scopes_at_once_is_refused(store: Store) -> None:
    twice = a_scope(id="scope2", resources=[a_resource("VM1")])

    with pytest.raises(NameTakenError, match="VM1"):
        await enroll(store, [TWO, twice], [])

    assert await store.read(lambda s: s.scope_ids("")) == []


async def test_an_address_that_another_vm_has_is_refused_with_all_of_it(store: Store) -> None:
    await enroll(store, [OTHER], [VM3])

    with pytest.raises(AddressTakenError, match="vm3"):
        await enroll(store, [TWO], [VM1, replace(VM2, address=VM3.address)])

    assert await store.read(lambda s: list(s.bindings())) == [VM3]


async def test_an_address_that_two_are_to_get_is_refused(store: Store) -> None:
    with pytest.raises(AddressTakenError, match="vm1"):
        await enroll(store, [TWO], [VM1, replace(VM2, address=VM1.address)])

    assert await store.read(lambda s: s.scope_ids("")) == []


async def test_any_number_of_vms_may_be_added_without_an_address(store: Store) -> None:
    nowhere = [replace(each, address="") for each in (VM1, VM2)]

    await enroll(store, [TWO], nowhere)

    assert await store.read(lambda s: list(s.bindings())) == nowhere
