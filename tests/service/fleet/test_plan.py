"""From a plan to scopes and bindings."""

import ipaddress
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.core.ids import ResourceName
from forewarned.core.model import EvictionPolicy, Policy, Priority, Publishing, Resource, ScopeKind
from forewarned.service.errors import AddressTakenError, HostSharedError, NameTakenError
from forewarned.service.events.api_versions import EVENT_VERSIONS
from forewarned.service.fleet.declaration import (
    AvailabilitySet,
    CloudService,
    CloudServiceRole,
    FleetPlan,
    Member,
    Model,
    Orchestration,
    ScaleSet,
    VirtualMachine,
)
from forewarned.service.fleet.placement import AddressesExhaustedError, PlannedScope
from forewarned.service.fleet.validation import InvalidFleetError, mistakes
from tests.service.fleet.expansion import expand

RANGE = ipaddress.ip_network("127.8.0.0/16")
SPOT = Model(priority=Priority.SPOT)


def vms(*names: str) -> tuple[VirtualMachine, ...]:
    return tuple(VirtualMachine(name=name) for name in names)


def members(count: int) -> tuple[Member, ...]:
    return tuple(Member(name=f"db-{index}") for index in range(count))


def scopes(plan: FleetPlan) -> list[PlannedScope]:
    return expand(plan, address_range=RANGE)


def names(planned: PlannedScope) -> list[str]:
    assert [binding.name for binding in planned.bindings] == list(planned.scope.resources)
    return list(planned.scope.resources)


def resources(plan: FleetPlan) -> list[Resource]:
    return [vm for planned in scopes(plan) for vm in planned.scope.resources.values()]


def addresses(plan: FleetPlan, kept: dict[str, str] | None = None) -> dict[str, str]:
    planned = expand(plan, address_range=RANGE, kept=kept or {})
    return {binding.name: binding.address for each in planned for binding in each.bindings}


# --- scopes --------------------------------------------------------------------------------------


def test_each_stand_alone_vm_is_a_scope_of_its_own() -> None:
    web, db = scopes(FleetPlan(vms=vms("web", "db")))

    assert (web.scope.id, web.scope.kind) == ("vm/web", ScopeKind.VIRTUAL_MACHINE)
    assert names(web) == ["web"]
    assert names(db) == ["db"]


def test_an_availability_set_is_one_scope_spread_over_its_domains() -> None:
    plan = FleetPlan(availability_sets=(AvailabilitySet(name="db", members=members(6)),))

    (db,) = scopes(plan)

    assert (db.scope.id, db.scope.kind) == ("avset/db", ScopeKind.AVAILABILITY_SET)
    assert [vm.update_domain for vm in db.scope.resources.values()] == [0, 1, 2, 3, 4, 0]
    assert [vm.fault_domain for vm in db.scope.resources.values()] == [0, 1, 0, 1, 0, 1]
    assert {binding.profile.availability_set for binding in db.bindings} == {"db"}


def test_a_scale_set_has_placement_groups_of_at_most_a_hundred() -> None:
    planned = scopes(FleetPlan(scale_sets=(ScaleSet(name="api", capacity=201),)))

    assert [each.scope.id for each in planned] == ["vmss/api/0", "vmss/api/1", "vmss/api/2"]
    assert [len(each.bindings) for each in planned] == [100, 100, 1]
    assert names(planned[2]) == ["api_200"]
    assert (
        len({binding.profile.placement_group_id for each in planned for binding in each.bindings})
        == 3
    )


def test_a_single_placement_group_holds_a_hundred_and_no_more() -> None:
    full = ScaleSet(name="api", capacity=100, single_placement_group=True)

    assert len(scopes(FleetPlan(scale_sets=(full,)))) == 1
    with pytest.raises(InvalidFleetError, match="at most 100"):
        scopes(FleetPlan(scale_sets=(replace(full, capacity=101),)))


def test_sets_without_vms_are_scopes_that_wait_for_them() -> None:
    plan = FleetPlan(
        availability_sets=(AvailabilitySet(name="db"),),
        scale_sets=(ScaleSet(name="api", capacity=0),),
        cloud_services=(CloudService(name="shop"),),
    )

    planned = scopes(plan)

    assert [each.scope.id for each in planned] == ["avset/db", "vmss/api/0", "service/shop"]
    assert [each.bindings for each in planned] == [(), (), ()]


def test_a_cloud_service_is_one_scope_of_all_its_roles() -> None:
    roles = (
        CloudServiceRole(name="FrontEnd", instances=2),
        CloudServiceRole(name="Worker", instances=1),
    )

    (shop,) = scopes(FleetPlan(cloud_services=(CloudService(name="shop", roles=roles),)))

    assert (shop.scope.id, shop.scope.kind) == ("service/shop", ScopeKind.CLOUD_SERVICE)
    assert names(shop) == ["FrontEnd_IN_0", "FrontEnd_IN_1", "Worker_IN_0"]
    assert [vm.update_domain for vm in shop.scope.resources.values()] == [0, 1, 0]


def test_a_policy_is_its_scopes() -> None:
    policy = Policy(approves_user_reboot=True)

    planned = scopes(FleetPlan(scale_sets=(ScaleSet(name="api", capacity=101, policy=policy),)))

    assert [each.scope.policy for each in planned] == [policy, policy]


# --- names and profiles --------------------------------------------------------------------------


def test_uniform_instances_count_in_decimal_and_their_host_names_in_base_36() -> None:
    (api, *_) = scopes(FleetPlan(scale_sets=(ScaleSet(name="api", capacity=37),)))

    shown = {binding.name: binding.profile.computer_name for binding in api.bindings}

    assert shown[ResourceName("api_0")] == "api000000"
    assert shown[ResourceName("api_35")] == "api00000Z"
    assert shown[ResourceName("api_36")] == "api000010"


def test_flexible_instances_have_eight_characters_that_never_change() -> None:
    def named(capacity: int) -> list[str]:
        flexible = ScaleSet(name="job", capacity=capacity, orchestration=Orchestration.FLEXIBLE)
        return [name for each in scopes(FleetPlan(scale_sets=(flexible,))) for name in names(each)]

    grown = named(250)

    assert named(3) == grown[:3] == ["job_67cdaa33", "job_789897b1", "job_74bf6866"]
    assert len(set(grown)) == 250


def test_a_computer_name_may_have_a_prefix_of_its_own() -> None:
    api = ScaleSet(name="api", capacity=1, computer_name_prefix="vm-")

    (planned,) = scopes(FleetPlan(scale_sets=(api,)))

    assert planned.bindings[0].profile.computer_name == "vm-000000"


def test_a_vms_id_follows_from_its_name() -> None:
    def ids(plan: FleetPlan) -> dict[str, str]:
        return {each.bindings[0].name: each.bindings[0].profile.vm_id for each in scopes(plan)}

    before = ids(FleetPlan(vms=vms("web", "db")))
    after = ids(FleetPlan(vms=vms("cache", "db", "web")))

    assert before.items() <= after.items()
    assert len(set(after.values())) == 3


def test_a_profile_tells_a_vm_what_was_declared() -> None:
    model = Model(size="M64", os_type="Windows", tags={"tier": "web"})
    vm = VirtualMachine(name="web", zone="2", model=model)
    plan = FleetPlan(location="lab", resource_group="rg", subscription_id="s", vms=(vm,))

    profile = scopes(plan)[0].bindings[0].profile

    assert (profile.location, profile.resource_group, profile.subscription_id) == ("lab", "rg", "s")
    assert (profile.size, profile.os_type, profile.zone) == ("M64", "Windows", "2")
    assert profile.tags == {"tier": "web"}
    assert (profile.scale_set, profile.placement_group_id) == ("", "")


def test_a_zonal_scale_set_takes_its_zones_in_turn() -> None:
    api = ScaleSet(
        name="api", capacity=4, zones=("1", "2", "3"), orchestration=Orchestration.FLEXIBLE
    )

    (planned,) = scopes(FleetPlan(scale_sets=(api,)))

    assert [binding.profile.zone for binding in planned.bindings] == ["1", "2", "3", "1"]
    assert all(binding.profile.is_flexible for binding in planned.bindings)


def test_spot_and_terminate_notice_reach_the_rules() -> None:
    spot = ScaleSet(
        name="spot", capacity=1, model=replace(SPOT, eviction_policy=EvictionPolicy.DELETE)
    )
    api = ScaleSet(name="api", capacity=1, model=Model(terminate_notice=timedelta(minutes=5)))

    evicted, told = resources(FleetPlan(scale_sets=(spot, api)))

    assert (evicted.priority, evicted.eviction_policy) == (Priority.SPOT, EvictionPolicy.DELETE)
    assert (told.priority, told.terminate_notice) == (Priority.REGULAR, timedelta(minutes=5))


# --- hosts ---------------------------------------------------------------------------------------


def test_vms_of_different_scopes_share_hosts() -> None:
    plan = FleetPlan(
        vms=vms("web", "cache"),
        availability_sets=(AvailabilitySet(name="db", members=members(2)),),
    )

    assert [vm.host for vm in resources(plan)] == ["host-01", "host-01", "host-01", "host-02b"]


def test_a_host_is_in_one_zone() -> None:
    zonal = VirtualMachine(name="far", zone="1")

    assert {vm.host for vm in resources(FleetPlan(vms=(*vms("web"), zonal)))} == {
        "host-01",
        "host-01-zone-1",
    }


def test_a_full_host_is_followed_by_another() -> None:
    plan = FleetPlan(vms=vms(*(f"vm{number}" for number in range(21))))

    hosts = [vm.host for vm in resources(plan)]

    assert hosts == ["host-01"] * 10 + ["host-01-2"] * 10 + ["host-01-3"]


def test_a_declared_host_is_left_to_those_it_was_declared_for() -> None:
    plan = FleetPlan(vms=(VirtualMachine(name="web", host="host-01"), *vms("cache")))

    assert [vm.host for vm in resources(plan)] == ["host-01", "host-01-2"]


def test_declared_hosts_may_not_hold_two_update_domains_of_one_scope() -> None:
    shared = ScaleSet(name="api", capacity=2, hosts=("rack-1", "rack-1"))
    same_domain = replace(shared, update_domains=1)

    with pytest.raises(HostSharedError):
        scopes(FleetPlan(scale_sets=(shared,)))
    assert [vm.host for vm in resources(FleetPlan(scale_sets=(same_domain,)))] == ["rack-1"] * 2


@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 120), st.integers(1, 20), st.integers(1, 5)), max_size=4
    ),
    zones=st.sampled_from([(), ("1",), ("1", "2", "3")]),
)
def test_no_host_ever_holds_two_update_domains_of_one_scope(
    sizes: list[tuple[int, int, int]], zones: tuple[str, ...]
) -> None:
    sets = tuple(
        ScaleSet(name=f"set{n}", capacity=size, update_domains=uds, fault_domains=fds, zones=zones)
        for n, (size, uds, fds) in enumerate(sizes)
    )

    for planned in scopes(FleetPlan(vms=vms("web"), scale_sets=sets)):
        held: dict[str, set[int]] = {}
        for vm in planned.scope.resources.values():
            held.setdefault(vm.host, set()).add(vm.update_domain)
        assert all(len(domains) == 1 for domains in held.values())


# --- addresses -----------------------------------------------------------------------------------


def test_addresses_are_taken_in_order_around_those_declared() -> None:
    declared = VirtualMachine(name="web", address="127.8.0.2")

    assert addresses(FleetPlan(vms=(*vms("a"), declared, *vms("b")))) == {
        "a": "127.8.0.1",
        "web": "127.8.0.2",
        "b": "127.8.0.3",
    }


def test_a_vm_keeps_the_address_it_has_when_the_plan_grows_before_it() -> None:
    kept = {"WEB": "127.8.0.1", "gone": "127.8.0.2", "db": "127.8.0.9"}
    claims = VirtualMachine(name="new", address="127.8.0.9")

    found = addresses(FleetPlan(vms=(*vms("first"), claims, *vms("web", "db"))), kept)

    assert found == {
        "first": "127.8.0.3",
        "new": "127.8.0.9",
        "web": "127.8.0.1",
        "db": "127.8.0.4",
    }


def test_no_vm_gets_the_address_of_plain_loopback_callers() -> None:
    loopback = ipaddress.ip_network("127.0.0.0/8")

    (web,) = expand(FleetPlan(vms=vms("web")), address_range=loopback)

    assert web.bindings[0].address == "127.0.0.2"


def test_a_range_without_enough_addresses_is_refused() -> None:
    small = ipaddress.ip_network("10.0.0.0/30")

    with pytest.raises(AddressesExhaustedError, match=r"10\.0\.0\.0/30"):
        expand(FleetPlan(vms=vms("a", "b", "c")), address_range=small)


@pytest.mark.parametrize(
    ("declared", "bound"),
    [
        ("FD00:0:0::1", "fd00::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_address_is_bound_as_its_callers_are_known_by(declared: str, bound: str) -> None:
    vm = VirtualMachine(name="web", address=declared)

    assert addresses(FleetPlan(vms=(vm,))) == {"web": bound}


def test_two_vms_may_not_have_one_address_in_any_spelling() -> None:
    one = VirtualMachine(name="one", address="fd00::1")
    other = ScaleSet(name="api", capacity=2, addresses=("fd00::2", "fd00:0::1"))

    with pytest.raises(AddressTakenError):
        addresses(FleetPlan(vms=(one,), scale_sets=(other,)))


# --- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        FleetPlan(vms=vms("web", "WEB")),
        FleetPlan(vms=vms("api_0"), scale_sets=(ScaleSet(name="api", capacity=1),)),
        FleetPlan(availability_sets=(AvailabilitySet(name="db", members=members(1) * 2),)),
        FleetPlan(
            cloud_services=tuple(
                CloudService(name=name, roles=(CloudServiceRole(name="Web", instances=1),))
                for name in "ab"
            )
        ),
    ],
)
def test_two_vms_may_not_have_one_name_in_any_case(plan: FleetPlan) -> None:
    with pytest.raises(NameTakenError):
        scopes(plan)


def test_every_fault_is_found_with_its_place() -> None:
    late = timedelta(minutes=16)
    plan = FleetPlan(
        vms=(
            VirtualMachine(
                name="a/b", address="1.2.3", port_mark=0, interface='"', host="h/1", zone="/"
            ),
            VirtualMachine(name="ok", model=Model(eviction_policy=EvictionPolicy.DELETE)),
        ),
        availability_sets=(
            AvailabilitySet(name="db", update_domains=0, members=(Member(name=""),)),
            AvailabilitySet(name="DB", fault_domains=6),
        ),
        scale_sets=(
            ScaleSet(name="s", capacity=1, model=replace(SPOT, terminate_notice=late)),
            ScaleSet(name="t", capacity=-1, addresses=("x",), hosts=("a b",), zones=("1", "")),
        ),
        cloud_services=(
            CloudService(name=".", roles=(CloudServiceRole(name="R S", instances=-1),)),
        ),
    )

    found = [mistake.path for mistake in mistakes(plan)]
    told = [str(mistake.error) for mistake in mistakes(plan)]

    assert "expected at most 0, one for each VM, got 1" in told
    assert found == [
        ("vms", 0, "name"),
        ("vms", 0, "address"),
        ("vms", 0, "port_mark"),
        ("vms", 0, "interface"),
        ("vms", 0, "host"),
        ("vms", 0, "zone"),
        ("vms", 1, "eviction_policy"),
        ("availability_sets", 0, "update_domains"),
        ("availability_sets", 0, "vms", 0, "name"),
        ("availability_sets", 1, "fault_domains"),
        ("scale_sets", 0, "terminate_notification"),
        ("scale_sets", 0, "terminate_notification"),
        ("scale_sets", 1, "zones", 1),
        ("scale_sets", 1, "capacity"),
        ("scale_sets", 1, "addresses"),
        ("scale_sets", 1, "hosts"),
        ("scale_sets", 1, "addresses", 0),
        ("scale_sets", 1, "hosts", 0),
        ("cloud_services", 0, "name"),
        ("cloud_services", 0, "roles", 0, "name"),
        ("cloud_services", 0, "roles", 0, "instances"),
        ("availability_sets", 1, "name"),
    ]


def test_what_two_vms_claim_is_reported_at_the_second() -> None:
    plan = FleetPlan(
        vms=(
            VirtualMachine(name="web", address="10.0.0.1"),
            VirtualMachine(name="db", address="10.0.0.1"),
            *vms("web"),
            VirtualMachine(name="a", address="10.0.0.1", port_mark=5),
            VirtualMachine(name="b", address="10.0.0.1", port_mark=5),
        ),
        scale_sets=(
            ScaleSet(name="s", capacity=2, addresses=("10.0.0.2", "10.0.0.1"), hosts=("h", "h")),
        ),
    )

    assert [mistake.path for mistake in mistakes(plan)] == [
        ("vms", 1, "address"),
        ("vms", 2),
        ("vms", 4, "port_mark"),
        ("scale_sets", 0, "addresses", 1),
        ("scale_sets", 0, "hosts", 1),
    ]


def test_only_an_api_version_of_scheduled_events_is_published() -> None:
    wrong = Policy(publishing=Publishing(enabled=True, api_version="2021-01-01"))
    plan = FleetPlan(
        vms=(VirtualMachine(name="a", policy=wrong), VirtualMachine(name="b")),
        availability_sets=(AvailabilitySet(name="c", policy=wrong),),
        scale_sets=(ScaleSet(name="d", capacity=1, policy=wrong),),
        cloud_services=(CloudService(name="e", policy=wrong),),
    )

    found = mistakes(plan)

    kinds = ("vms", "availability_sets", "scale_sets", "cloud_services")
    assert [each.path for each in found] == [
        (kind, 0, "policy", "event_grid_version") for kind in kinds
    ]
    assert str(found[0].error).endswith("expected one of " + ", ".join(EVENT_VERSIONS))


def test_a_vm_with_a_port_mark_is_known_by_that_alone_and_keeps_its_address_for_itself() -> None:
    """S3: its address proves nothing, so nothing is bound to it."""
    told = VirtualMachine(name="a", address="10.0.0.9", port_mark=7, interface="tap-7")
    untold = VirtualMachine(name="b", port_mark=8)

    [[first], [second]] = [scope.bindings for scope in scopes(FleetPlan(vms=(told, untold)))]

    assert (first.address, first.port_mark, first.private_address) == ("port:7", 7, "10.0.0.9")
    assert first.profile.interface == "tap-7"
    assert (second.address, second.port_mark, second.private_address) == ("port:8", 8, "")


def test_a_plan_may_bring_its_own_range_of_addresses() -> None:
    own = ipaddress.ip_network("10.7.0.0/16")

    found = addresses(FleetPlan(vms=vms("a", "b"), address_range=own))

    assert found == {"a": "10.7.0.1", "b": "10.7.0.2"}


def test_ids_of_vms_are_those_that_any_maker_of_guids_would_make() -> None:
    """They are kept in databases: another way of making them must make the same."""
    [web] = scopes(FleetPlan(vms=vms("Web")))

    [binding] = web.bindings
    namespace = uuid.UUID("6f7e1c0a-3d52-5b7e-9d0c-6e6f74626566")
    assert binding.profile.vm_id == str(uuid.uuid5(namespace, "vm/web"))


def test_the_nearest_word_on_what_carries_out_a_vms_events_counts() -> None:
    plan = FleetPlan(
        actuator="rack1",
        vms=(
            VirtualMachine(name="a"),
            VirtualMachine(name="b", model=Model(actuator="scripts")),
        ),
    )

    found = {vm.name: vm.actuator for each in scopes(plan) for vm in each.scope.resources.values()}
    assert found == {"a": "rack1", "b": "scripts"}
