"""Fleet files: what they may say, and where they are wrong."""

import ipaddress
import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.config.toml import TomlFile
from forewarned.control.fleet import wire
from forewarned.control.fleet.file import FleetFileError, demo_fleet, load_fleet, plan_of
from forewarned.core.model import EvictionPolicy, Policy, Priority, Publishing, ScopeKind
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
from forewarned.service.fleet.validation import InvalidFleetError
from tests.service.fleet.expansion import expand

ROOT = Path(__file__).resolve().parents[3]
RANGE = ipaddress.ip_network("127.8.0.0/16")


def parse(text: str, *, is_known: bool = False) -> FleetPlan:
    file = TomlFile.parse(text, source="fleet.toml", error=FleetFileError)
    return plan_of(file, is_known=lambda _: is_known)


def problems(text: str) -> list[str]:
    with pytest.raises(FleetFileError) as refused:
        parse(text)
    return list(refused.value.mistakes)


def test_a_plan_that_is_known_is_not_looked_through_again() -> None:
    """A million VMs take seconds, at every start."""
    text = """
        [[vms]]
        name = "web"
        [[vms]]
        name = "web"
    """

    plan = parse(text, is_known=True)

    assert [vm.name for vm in plan.vms] == ["web", "web"]
    assert len(problems(text)) == 1


def test_what_cannot_be_read_is_no_plan_to_be_known() -> None:
    with pytest.raises(FleetFileError):
        parse("[[vms]]\nname = 1", is_known=True)


# --- what a file says ----------------------------------------------------------------------------


def test_an_empty_file_is_an_empty_fleet() -> None:
    assert parse("") == FleetPlan()


def test_every_field_is_read() -> None:
    plan = parse("""
        location = "lab"
        resource_group = "rg"
        subscription_id = "sub"

        [[vms]]
        name = "web"
        zone = 1
        address = "127.8.0.10"
        port_mark = 101
        interface = "tap-web"
        host = "host-01"
        size = "M64"
        os_type = "Windows"
        priority = "Spot"
        eviction_policy = "Delete"
        tags = { role = "web" }
        policy = { approve_user_reboot = true, approve_user_redeploy = true, approve_when_all_down = false }

        [[availability_sets]]
        name = "db"
        update_domains = 3
        fault_domains = 1
        vms = ["db-a", { name = "db-b", address = "127.8.0.11", port_mark = 102, interface = "vnet3", host = "host-02" }]

        [[scale_sets]]
        name = "api"
        capacity = 3
        orchestration = "Flexible"
        terminate_notification = "PT5M"
        zones = ["1", 2]
        update_domains = 4
        fault_domains = 5
        single_placement_group = true
        computer_name_prefix = "vm"
        addresses = ["127.8.0.12"]
        hosts = ["host-03"]
        [scale_sets.policy]
        approve_user_redeploy = true
        event_grid_version = "2020-07-01"

        [[cloud_services]]
        name = "shop"
        update_domains = 2
        fault_domains = 3
        roles = [{ name = "FrontEnd", instances = 2, size = "A1", addresses = ["127.8.0.13"], hosts = ["host-04"] }]
    """)

    assert plan == FleetPlan(
        location="lab",
        resource_group="rg",
        subscription_id="sub",
        vms=(
            VirtualMachine(
                name="web",
                zone="1",
                address="127.8.0.10",
                port_mark=101,
                interface="tap-web",
                host="host-01",
                model=Model(
                    size="M64",
                    os_type="Windows",
                    priority=Priority.SPOT,
                    eviction_policy=EvictionPolicy.DELETE,
                    tags={"role": "web"},
                ),
                policy=Policy(
                    approves_user_reboot=True,
                    approves_user_redeploy=True,
                    approves_when_all_down=False,
                ),
            ),
        ),
        availability_sets=(
            AvailabilitySet(
                name="db",
                members=(
                    Member(name="db-a"),
                    Member(
                        name="db-b",
                        address="127.8.0.11",
                        port_mark=102,
                        interface="vnet3",
                        host="host-02",
                    ),
                ),
                update_domains=3,
                fault_domains=1,
            ),
        ),
        scale_sets=(
            ScaleSet(
                name="api",
                capacity=3,
                orchestration=Orchestration.FLEXIBLE,
                zones=("1", "2"),
                update_domains=4,
                fault_domains=5,
                single_placement_group=True,
                computer_name_prefix="vm",
                addresses=("127.8.0.12",),
                hosts=("host-03",),
                model=Model(terminate_notice=timedelta(minutes=5)),
                policy=Policy(
                    approves_user_redeploy=True,
                    publishing=Publishing(enabled=True, api_version="2020-07-01"),
                ),
            ),
        ),
        cloud_services=(
            CloudService(
                name="shop",
                roles=(
                    CloudServiceRole(
                        name="FrontEnd",
                        instances=2,
                        addresses=("127.8.0.13",),
                        hosts=("host-04",),
                        model=Model(size="A1"),
                    ),
                ),
                update_domains=2,
                fault_domains=3,
            ),
        ),
    )


def test_choices_are_read_in_any_letter_case() -> None:
    vm = {"name": "a", "priority": "spot", "eviction_policy": "DELETE"}
    scale_set = {"name": "b", "capacity": 1, "orchestration": "flexible"}

    plan = wire.parse({"vms": [vm], "scale_sets": [scale_set]})

    assert plan.vms[0].model.priority is Priority.SPOT
    assert plan.vms[0].model.eviction_policy is EvictionPolicy.DELETE
    assert plan.scale_sets[0].orchestration is Orchestration.FLEXIBLE


def test_counted_vms_of_an_availability_set_are_named_after_it() -> None:
    (db,) = parse('[[availability_sets]]\nname = "db"\ncount = 2').availability_sets

    assert db.members == (Member(name="db-0"), Member(name="db-1"))


def test_the_demo_fleet_has_every_kind_of_scope_and_its_first_vm_is_web() -> None:
    planned = expand(demo_fleet(), address_range=RANGE)

    assert {each.scope.kind for each in planned} == set(ScopeKind)
    assert planned[0].bindings[0].name == "web"
    assert [len(each.bindings) for each in planned] == [1, 1, 4, 3, 2, 2, 3]


# --- to the wire and back ------------------------------------------------------------------------

_names = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)
_models = st.one_of(
    st.builds(
        Model,
        size=st.text(max_size=5),
        tags=st.dictionaries(_names, st.text(max_size=3), max_size=2),
        actuator=st.sampled_from(["", "rack1"]),
    ),
    st.builds(
        Model, priority=st.just(Priority.SPOT), eviction_policy=st.sampled_from(EvictionPolicy)
    ),
    st.builds(Model, terminate_notice=st.timedeltas(timedelta(minutes=5), timedelta(minutes=15))),
)
_policies = st.builds(
    Policy,
    approves_user_reboot=st.booleans(),
    approves_when_all_down=st.booleans(),
    publishing=st.sampled_from([Publishing(), Publishing(enabled=True, api_version="2019-08-01")]),
)
_vms = st.builds(
    VirtualMachine, name=_names, zone=st.sampled_from(["", "1"]), model=_models, policy=_policies
)
_sets = st.builds(
    ScaleSet,
    name=_names,
    capacity=st.integers(0, 5),
    orchestration=st.sampled_from(Orchestration),
    zones=st.sampled_from([(), ("1", "2")]),
    update_domains=st.integers(1, 20),
    model=_models,
    policy=_policies,
)


@given(vm=_vms, scale_set=_sets)
def test_a_plan_survives_the_way_over_the_wire(vm: VirtualMachine, scale_set: ScaleSet) -> None:
    plan = FleetPlan(actuator="rack2", vms=(vm,), scale_sets=(scale_set,))

    body = msgspec.json.encode(wire.to_wire(plan))

    assert wire.parse(msgspec.json.decode(body)) == plan


@pytest.mark.parametrize("plan", [demo_fleet(), load_fleet(ROOT / "examples" / "fleet.toml")])
def test_real_plans_survive_it_too(plan: FleetPlan) -> None:
    assert wire.parse(msgspec.to_builtins(wire.to_wire(plan))) == plan


# --- mistakes ------------------------------------------------------------------------------------


def test_a_mistake_is_named_with_file_line_and_field() -> None:
    assert problems('\n[[scale_sets]]\nname = "api"\n\ncapacity = "three"\n') == [
        'fleet.toml:5: scale_sets[0].capacity: expected a whole number, got "three"'
    ]


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    told = problems("""\
location = 3
lokation = "lab"
cloud_services = "none"

[[scale_sets]]
capacity = -1
tags = { a = 1 }

[[scale_sets]]
name = "api"
capacity = 3
policy.approve = true

[[vms]]
name = "web"
zon = "1"
priority = "Sport"

[[availability_sets]]
name = "db"
terminate_notification = "5 minutes"
vms = [
    "db-0",
    { nme = "db-1" },
]
""")

    assert told == [
        "fleet.toml:1: location: expected text, got 3",
        "fleet.toml:2: lokation: there is no such field; did you mean location?",
        'fleet.toml:3: cloud_services: expected a list, got "none"',
        "fleet.toml:5: scale_sets[0]: the field 'name' is missing",
        "fleet.toml:6: scale_sets[0].capacity: expected a whole number >= 0, got -1",
        "fleet.toml:7: scale_sets[0].tags.a: expected text, got 1",
        "fleet.toml:12: scale_sets[1].policy.approve: there is no such field",
        "fleet.toml:16: vms[0].zon: there is no such field; did you mean zone?",
        'fleet.toml:17: vms[0].priority: expected Regular or Spot, got "Sport"; did you mean Spot?',
        "fleet.toml:24: availability_sets[0].vms[1].nme: there is no such field; did you mean name?",
        "fleet.toml:24: availability_sets[0].vms[1]: the field 'name' is missing",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[[vms]]\nname = "web"\n[[vms]]\nname = "WEB"\n',
            "fleet.toml:3: vms[1]: a VM named 'WEB' already exists, in scope 'vm/web'",
        ),
        (
            '[[vms]]\nname = "web"\nterminate_notification = "5 minutes"\n',
            (
                "fleet.toml:3: vms[0].terminate_notification: '5 minutes' is not a duration:"
                " write it like 90s, 14m59s, 7d or PT5M"
            ),
        ),
        (
            '[[scale_sets]]\nname = "s"\ncapacity = 1\npriority = "Spot"\nterminate_notification = "5m"\n',
            "fleet.toml:5: scale_sets[0].terminate_notification: Spot VMs get no terminate notification",
        ),
        (
            '[[availability_sets]]\nname = "db"\ncount = 1\nvms = ["a"]\n',
            "fleet.toml:3: availability_sets[0].count: give either count or vms, not both",
        ),
        (
            '[[scale_sets]]\nname = "s"\ncapacity = 2\nhosts = [\n  "h",\n  "h",\n]\n',
            (
                "fleet.toml:6: scale_sets[0].hosts[1]: host 'h' would have VMs of update domains 0, 1 of"
                " 'vmss/s/0': give each update domain its own hosts"
            ),
        ),
        ("vms = 1979-05-27\n", 'fleet.toml:1: vms: expected a list, got "1979-05-27"'),
        ("vms = [3]\n", "fleet.toml:1: vms[0]: expected a table, got 3"),
        ("\na = \n", "fleet.toml:2: Invalid value"),
        (f"a = {'9' * 5000}", "fleet.toml: a number has too many digits"),
        (f"a = {'[' * 5000}{']' * 5000}", "fleet.toml: the nesting is too deep"),
        ("a = '''", "fleet.toml:1: Expected \"'''\" (at end of document)"),
    ],
)
def test_a_mistake_says_what_is_wrong(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_range_of_addresses_is_read_and_written_back() -> None:
    plan = parse('address_range = "10.0.0.0/8"')

    assert plan.address_range == ipaddress.ip_network("10.0.0.0/8")
    assert wire.parse(msgspec.to_builtins(wire.to_wire(plan))) == plan


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "everywhere", ""])
def test_what_is_no_range_of_addresses_is_refused_with_its_line(text: str) -> None:
    [problem] = problems(f'location = "here"\naddress_range = "{text}"')

    assert problem.startswith("fleet.toml:2: address_range: not a range of addresses: ")


def test_a_long_value_is_cut_short() -> None:
    (told,) = problems(f"location = [{'1, ' * 1000}]")

    assert len(told) < 100


def test_a_file_that_cant_be_read_is_refused_by_name(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'location = "Z\xfcrich"')

    with pytest.raises(FleetFileError, match=r"gone\.toml: No such file"):
        load_fleet(tmp_path / "gone.toml")
    with pytest.raises(FleetFileError, match=r"latin\.toml: not UTF-8"):
        load_fleet(latin)


def test_the_mark_that_editors_put_before_a_text_is_passed_over(tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b'\xef\xbb\xbflocation = "here"')

    assert load_fleet(marked).location == "here"


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidFleetError, match=r"^expected a table, got 3$"):
        wire.parse(3)


def test_a_null_that_may_be_left_out_is_no_mistake_beside_one() -> None:
    vm = {"name": "a", "host": None, "address": None, "terminate_notification": None, "bogus": 1}

    with pytest.raises(InvalidFleetError) as refused:
        wire.parse({"address_range": None, "vms": [vm], "bogus": 1})

    assert str(refused.value).splitlines() == [
        "bogus: there is no such field",
        "vms[0].bogus: there is no such field",
    ]


def test_a_null_where_a_value_is_needed_is_a_mistake() -> None:
    with pytest.raises(InvalidFleetError, match=r"^vms\[0\]\.size: expected text, got null$"):
        wire.parse({"vms": [{"name": "a", "size": None}]})


def test_fields_that_do_not_exist_are_reported_in_the_order_of_the_body() -> None:
    fields = [f"bogus{number}" for number in (*range(20, 40), *range(20))]

    with pytest.raises(InvalidFleetError) as refused:
        wire.parse(dict.fromkeys(fields, 1))

    assert [mistake.path for mistake in refused.value.mistakes] == [(name,) for name in fields]


# --- the manual ----------------------------------------------------------------------------------


def test_the_manual_shows_the_example() -> None:
    example = (ROOT / "examples" / "fleet.toml").read_text()

    assert f"```toml\n{example}```" in (ROOT / "docs" / "fleet.md").read_text()


@pytest.mark.parametrize(
    "declaration",
    [
        wire.WireFleet,
        wire.WireHost,
        wire.WireVirtualMachine,
        wire.WireAvailabilitySet,
        wire.WireScaleSet,
        wire.WireCloudService,
        wire.WirePolicy,
    ],
)
def test_the_manual_has_every_field(declaration: type[msgspec.Struct]) -> None:
    documented = set(
        re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "fleet.md").read_text(), re.MULTILINE)
    )

    assert set(declaration.__struct_encode_fields__) <= documented


def test_a_vm_has_the_actuator_that_is_named_nearest_to_it() -> None:
    text = """
        actuator = "all"
        [[hosts]]
        name = "hv-a"
        actuator = "rack1"
        [[vms]]
        name = "own"
        host = "hv-a"
        actuator = "scripts"
        [[vms]]
        name = "hosts"
        host = "HV-A"
        [[vms]]
        name = "tops"
        host = "hv-b"
    """

    planned = expand(parse(text), address_range=RANGE)

    actuators = {
        str(vm.name): vm.actuator for each in planned for vm in each.scope.resources.values()
    }
    assert actuators == {"own": "scripts", "hosts": "rack1", "tops": "all"}


def test_a_host_is_described_once() -> None:
    text = '[[hosts]]\nname = "hv-a"\n[[hosts]]\nname = "HV-A"\nactuator = "rack1"\n'

    assert problems(text) == ["fleet.toml:4: hosts[1].name: two of the hosts are named 'HV-A'"]
