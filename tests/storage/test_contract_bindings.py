"""What every store promises about the places of VMs."""

from dataclasses import replace

import pytest

from forewarned.core.errors import UnknownResourceError
from forewarned.service.errors import AddressTakenError
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import Binding, Commit
from tests.builders import a_binding, a_profile, a_resource, a_scope, emptied
from tests.storage.store_calls import keep, save, save_in


async def bind(store: Store, *bindings: Binding) -> Commit:
    def decision(tx: Transaction) -> None:
        for binding in bindings:
            tx.bind(binding)

    _, commit = await store.transact(decision)
    return commit


async def bindings(store: Store) -> list[Binding]:
    return await store.read(lambda snapshot: list(snapshot.bindings()))


async def test_a_bound_vm_is_told_of_and_found_in_any_letter_case(store: Store) -> None:
    await keep(store, a_scope())

    commit = await bind(store, a_binding())

    assert commit.bound == (a_binding(),)
    assert commit.scopes == ()
    assert await store.read(lambda s: s.binding("VM1")) == a_binding()
    assert await bindings(store) == [a_binding()]


async def test_several_vms_are_found_at_once_in_any_letter_case(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2"), a_resource("vm3")]))
    both = [a_binding(), a_binding("vm2", address="10.0.0.2")]
    await bind(store, *both)

    found = await store.read(lambda s: s.bindings_named(["VM2", "vm1", "vm3", "none"]))

    assert sorted(found, key=lambda binding: binding.name) == both
    assert await store.read(lambda s: s.bindings_named([])) == []


async def test_all_bindings_are_told_with_the_hosts_of_their_vms(store: Store) -> None:
    here, there = a_resource("vm1", host="hv-a"), a_resource("vm2", host="hv-b")
    await keep(store, a_scope(resources=[here, there, a_resource("unbound")]))
    both = [a_binding(), a_binding("vm2", address="10.0.0.2")]
    await bind(store, *both)

    found = await store.read(lambda s: list(s.placed_bindings()))

    assert found == [(both[0], "hv-a"), (both[1], "hv-b")]


async def test_a_vm_that_was_never_bound_has_no_binding(store: Store) -> None:
    await keep(store, a_scope())

    assert await store.read(lambda s: s.binding("vm1")) is None
    assert await bindings(store) == []


async def test_binding_a_vm_as_it_is_bound_already_says_nothing(store: Store) -> None:
    await keep(store, a_scope())
    await bind(store, a_binding())

    assert (await bind(store, a_binding())).bound == ()


async def test_a_binding_shows_the_name_as_its_scope_does(store: Store) -> None:
    await keep(store, a_scope())

    commit = await bind(store, a_binding("VM1", profile=a_profile("vm1")))

    assert commit.bound == (a_binding(),)


async def test_only_a_vm_of_that_scope_can_be_bound(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))

    for binding in (a_binding("vm2"), a_binding(scope_id="scope2")):
        with pytest.raises(UnknownResourceError):
            await bind(store, binding)


async def test_no_two_vms_have_one_address(store: Store) -> None:
    """I9"""
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    await bind(store, a_binding())

    with pytest.raises(AddressTakenError) as refused:
        await bind(store, a_binding("vm2"))

    assert (refused.value.address, refused.value.name) == ("10.0.0.1", "vm1")
    assert await bindings(store) == [a_binding()]


async def test_any_number_of_vms_have_no_address(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    nowhere = [a_binding("vm1", address=""), a_binding("vm2", address="")]

    await bind(store, *nowhere)

    assert await bindings(store) == nowhere


async def test_an_address_that_was_given_up_can_be_given_to_another(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    await bind(store, a_binding("vm1"))
    moved = [a_binding("vm1", address="10.0.0.9"), a_binding("vm2", address="10.0.0.1")]

    await bind(store, *moved)

    assert await bindings(store) == moved


async def test_a_vm_that_is_gone_is_unbound_and_its_address_free(store: Store) -> None:
    """I9, F18"""
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    await bind(store, a_binding("vm1"))

    commit = await save(store, a_scope(resources=[a_resource("vm2")]))
    await bind(store, a_binding("vm2"))

    assert commit.unbound == ("vm1",)
    assert await store.read(lambda s: s.binding("vm1")) is None


async def test_a_vm_that_comes_back_has_lost_its_binding(store: Store) -> None:
    await keep(store, a_scope())
    await bind(store, a_binding())

    await save(store, a_scope(resources=[]))
    await save(store, a_scope())

    assert await bindings(store) == []


async def test_a_commit_tells_where_a_vm_ended_up(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))
    await bind(store, a_binding())
    there = a_binding(scope_id="scope2")

    def move(tx: Transaction) -> None:
        save_in(tx, a_scope(resources=[]))
        save_in(tx, a_scope(id="scope2"))
        tx.bind(there)

    def come_and_go(tx: Transaction) -> None:
        tx.bind(a_binding(scope_id="scope2", address="10.0.0.7"))
        save_in(tx, a_scope(id="scope2", resources=[]))

    _, moved = await store.transact(move)
    _, gone = await store.transact(come_and_go)

    assert (moved.bound, moved.unbound) == ((there,), ())
    assert (gone.bound, gone.unbound) == ((), ("vm1",))


async def test_changing_a_vm_leaves_its_binding_alone(store: Store) -> None:
    await keep(store, a_scope())
    await bind(store, a_binding())

    commit = await save(store, a_scope(resources=[a_resource("vm1", host="host9")]))

    assert (commit.bound, commit.unbound) == ((), ())
    assert await bindings(store) == [a_binding()]


async def test_bindings_come_in_the_order_of_the_scopes_and_their_vms(store: Store) -> None:
    await keep(
        store,
        a_scope(id="z", resources=[a_resource("vm2"), a_resource("vm1")]),
        a_scope(id="a", resources=[a_resource("vm3")]),
    )
    await bind(
        store,
        a_binding("vm3", scope_id="a", address="10.0.0.3"),
        a_binding("vm1", scope_id="z", address="10.0.0.1"),
        a_binding("vm2", scope_id="z", address="10.0.0.2"),
    )

    assert [binding.name for binding in await bindings(store)] == ["vm2", "vm1", "vm3"]


async def test_the_first_vm_is_that_of_the_earliest_scope_which_has_one(sole_store: Store) -> None:
    """Also one that comes back to where it was."""
    one, other = a_scope(), a_scope(id="scope2", resources=[a_resource("vm2")])
    await keep(sole_store, one, other)
    unbound = await first_vm(sole_store)
    told = [await bind(sole_store, a_binding("vm2", scope_id="scope2", address="10.0.0.2"))]
    told.append(await bind(sole_store, a_binding()))
    await save(sole_store, a_scope(resources=[a_resource("vm1"), a_resource("vm3")]))
    told.append(await bind(sole_store, a_binding("vm3", address="10.0.0.3")))
    told.append(await bind(sole_store, a_binding(address="10.0.0.9")))
    told.append(await save(sole_store, a_scope(resources=[a_resource("vm3")])))
    told.append(await save(sole_store, emptied(one)))
    await save(sole_store, one)
    told.append(await bind(sole_store, a_binding()))
    told.append(await save(sole_store, emptied(one)))
    told.append(await save(sole_store, emptied(other)))

    firsts = ["vm2", "vm1", "vm1", "vm1", "vm3", "vm2", "vm1", "vm2", None]
    assert unbound is None
    assert [commit.first_vm for commit in told] == firsts
    assert await first_vm(sole_store) is None


async def test_binding_many_tells_which_were_bound_otherwise(store: Store) -> None:
    names = ["vm1", "vm2", "vm3"]
    await keep(store, a_scope(resources=[a_resource(name) for name in names]))
    first, second, third = (a_binding(name, address=f"10.0.0.{name[2]}") for name in names)
    await bind(store, first, second)
    moved = replace(second, address="10.0.0.9")

    changed, commit = await store.transact(lambda tx: tx.bind_all([first, moved, third]))

    assert changed == ["vm2", "vm3"]
    assert commit.bound == (moved, third)
    assert await store.read(lambda s: list(s.bindings())) == [first, moved, third]


async def test_of_many_bindings_all_are_refused_if_an_address_is_taken(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    both = [a_binding("vm1", address="10.0.0.1"), a_binding("vm2", address="10.0.0.1")]

    with pytest.raises(AddressTakenError):
        await store.transact(lambda tx: tx.bind_all(both))

    assert await store.read(lambda s: list(s.bindings())) == []


async def test_a_work_that_fails_leaves_the_first_vm_as_it_was(sole_store: Store) -> None:
    await keep(sole_store, a_scope(), a_scope(id="scope2", resources=[a_resource("vm2")]))
    await bind(sole_store, a_binding(), a_binding("vm2", scope_id="scope2", address="10.0.0.2"))

    def decision(tx: Transaction) -> None:
        save_in(tx, emptied(a_scope()))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await sole_store.transact(decision)
    commit = await bind(sole_store, a_binding("vm2", scope_id="scope2", address="10.0.0.7"))

    assert commit.first_vm == await first_vm(sole_store) == "vm1"


async def first_vm(store: Store) -> str | None:
    return await store.read(lambda snapshot: snapshot.first_vm())


async def test_a_vm_is_bound_to_a_port_as_to_an_address(store: Store) -> None:
    """S3, I22: one port, one VM."""
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    profile = replace(a_profile(), private_address="10.0.0.1", interface="tap-1")
    at_port = a_binding(address="port:101", profile=profile)
    await bind(store, at_port)

    with pytest.raises(AddressTakenError, match="port mark 101 is already bound to VM 'vm1'"):
        await bind(store, a_binding("vm2", address="port:101"))
    await bind(store, a_binding("vm2", address="10.0.0.1"))

    assert await bindings(store) == [at_port, a_binding("vm2", address="10.0.0.1")]
    places = await store.read(lambda s: {place.name: place.address for place in s.places()})
    assert places == {"vm1": "port:101", "vm2": "10.0.0.1"}
