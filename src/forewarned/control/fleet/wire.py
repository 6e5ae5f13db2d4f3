"""The fleet as JSON and TOML write it: one schema for `PUT /v1/fleet` and for the fleet file.

What `to_wire` writes, `parse` reads back as the same plan.
"""

import ipaddress
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec

from forewarned.config.durations import InvalidDurationError, format_duration, parse_duration
from forewarned.config.mistakes import KeyPath, show_path
from forewarned.config.tables import TableReader
from forewarned.core.model import EvictionPolicy, Policy, Priority, Publishing
from forewarned.service.fleet.declaration import (
    FAULT_DOMAINS,
    NO_SUBSCRIPTION,
    SCALE_SET_FAULT_DOMAINS,
    UPDATE_DOMAINS,
    AvailabilitySet,
    CloudService,
    CloudServiceRole,
    DeclaredHost,
    FleetPlan,
    Member,
    Model,
    Network,
    Orchestration,
    ScaleSet,
    VirtualMachine,
)
from forewarned.service.fleet.validation import InvalidFleetError, Mistake, mistakes

# A slip of the hand must not ask for more VMs than there is memory.
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Wire = TypeVar("_Wire", bound=msgspec.Struct)
_Planned = TypeVar("_Planned")

IsKnown = Callable[[FleetPlan], bool]

_DEFAULT: Final = Model()


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class WirePolicy(
    _Part, kw_only=True, frozen=True, rename=lambda name: name.replace("approves", "approve")
):
    approves_user_reboot: bool = False
    approves_user_redeploy: bool = False
    approves_when_all_down: bool = True
    event_grid_version: str | None = None


class _Modelled(_Part, kw_only=True, frozen=True):
    size: str = _DEFAULT.size
    os_type: str = _DEFAULT.os_type
    priority: Priority = Priority.REGULAR
    eviction_policy: EvictionPolicy = EvictionPolicy.DEALLOCATE
    terminate_notification: str | None = None
    tags: dict[str, str] = {}
    actuator: str = ""


class WireVirtualMachine(_Modelled, kw_only=True, frozen=True):
    name: str
    vm_id: str | None = None
    zone: str | int = ""
    address: str | None = None
    port_mark: int | None = None
    interface: str = ""
    host: str | None = None
    policy: WirePolicy = WirePolicy()


class WireMember(_Part, kw_only=True, frozen=True):
    name: str
    vm_id: str | None = None
    address: str | None = None
    port_mark: int | None = None
    interface: str = ""
    host: str | None = None


class WireAvailabilitySet(_Modelled, kw_only=True, frozen=True):
    name: str
    vms: tuple[str | WireMember, ...] = ()
    count: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS
    policy: WirePolicy = WirePolicy()


class WireScaleSet(_Modelled, kw_only=True, frozen=True):
    name: str
    capacity: _Count
    orchestration: Orchestration = Orchestration.UNIFORM
    zones: tuple[str | int, ...] = ()
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = SCALE_SET_FAULT_DOMAINS
    single_placement_group: bool = False
    computer_name_prefix: str = ""
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    policy: WirePolicy = WirePolicy()


class WireRole(_Modelled, kw_only=True, frozen=True):
    name: str
    instances: _Count
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class WireCloudService(_Part, kw_only=True, frozen=True):
    name: str
    roles: tuple[WireRole, ...] = ()
    update_domains: int = UPDATE_DOMAINS
    fault_domains: int = FAULT_DOMAINS
    policy: WirePolicy = WirePolicy()


class WireHost(_Part, kw_only=True, frozen=True):
    name: str
    actuator: str = ""


class WireFleet(_Part, kw_only=True, frozen=True):
    location: str = "local"
    resource_group: str = "local"
    subscription_id: str = NO_SUBSCRIPTION
    address_range: str | None = None
    actuator: str = ""
    hosts: list[WireHost] = []
    vms: list[WireVirtualMachine] = []
    availability_sets: list[WireAvailabilitySet] = []
    scale_sets: list[WireScaleSet] = []
    cloud_services: list[WireCloudService] = []


def parse(raw: object, *, is_known: IsKnown = lambda _: False) -> FleetPlan:
    """A plan from decoded JSON or TOML. Raises InvalidFleetError with everything that is wrong.

    A plan that is known to be without mistakes is not looked through for them: a million VMs take
    seconds.
    """
    found: list[Mistake] = []
    plan = _fleet(raw, found)
    if not found and not is_known(plan):
        found = mistakes(plan)
    if found:
        lines = [
            f"{show_path(mistake.path)}: {mistake.error}".removeprefix(": ") for mistake in found
        ]
        raise InvalidFleetError("\n".join(lines), found)
    return plan


def to_wire(plan: FleetPlan) -> WireFleet:
    return WireFleet(
        **_same(WireFleet, plan),
        address_range=None if plan.address_range is None else str(plan.address_range),
        hosts=[WireHost(**_same(WireHost, each)) for each in plan.hosts],
        vms=[
            WireVirtualMachine(zone=vm.zone, **_wire_parts(WireVirtualMachine, vm))
            for vm in plan.vms
        ],
        availability_sets=[
            WireAvailabilitySet(
                vms=tuple(map(_wire_member, each.members)),
                **_wire_parts(WireAvailabilitySet, each),
            )
            for each in plan.availability_sets
        ],
        scale_sets=[
            WireScaleSet(zones=each.zones, **_wire_parts(WireScaleSet, each))
            for each in plan.scale_sets
        ],
        cloud_services=[
            WireCloudService(
                **_same(WireCloudService, each),
                roles=tuple(
                    WireRole(**_same(WireRole, role), **_wire_model(role.model))
                    for role in each.roles
                ),
                policy=_wire_policy(each.policy),
            )
            for each in plan.cloud_services
        ],
    )


_CONVERTED: Final = frozenset(
    {
        *("policy", "event_grid_version", "terminate_notification", "zone", "zones", "vms"),
        *("count", "roles"),
        *("address_range", "availability_sets", "scale_sets", "cloud_services"),
    }
)


def _same(type_: type[_Part], declared: object) -> dict[str, Any]:  # of each field's own type
    """The fields that a declaration has by the same name and type on the wire and in a plan."""
    return {name: getattr(declared, name) for name in _same_names(type_)}


@cache
def _same_names(type_: type[_Part]) -> tuple[str, ...]:
    is_modelled = issubclass(type_, _Modelled) and type_ is not _Modelled
    of_model = _Modelled.__struct_fields__ if is_modelled else ()
    # Scale sets list the hosts of their VMs by name.
    of_fleet = {"hosts"} if type_ is WireFleet else ()
    converted = {*_CONVERTED, *of_model, *of_fleet}
    return tuple(name for name in type_.__struct_fields__ if name not in converted)


# --- from the wire -------------------------------------------------------------------------------


def _fleet(raw: object, found: list[Mistake]) -> FleetPlan:
    table = raw if isinstance(raw, Mapping) else {}
    lists = ("hosts", "vms", "availability_sets", "scale_sets", "cloud_services")
    # Lists are read one declaration at a time below; what is no list at all is refused here.
    rest = {
        key: value
        for key, value in table.items()
        if key not in lists or not isinstance(value, list)
    }
    head = _read(rest if isinstance(raw, Mapping) else raw, WireFleet, (), found) or WireFleet()
    return FleetPlan(
        **_same(WireFleet, head),
        address_range=_address_range(head, found),
        hosts=_each(table, "hosts", WireHost, _host, found),
        vms=_each(table, "vms", WireVirtualMachine, _virtual_machine, found),
        availability_sets=_each(
            table, "availability_sets", WireAvailabilitySet, _availability_set, found
        ),
        scale_sets=_each(table, "scale_sets", WireScaleSet, _scale_set, found),
        cloud_services=_each(table, "cloud_services", WireCloudService, _cloud_service, found),
    )


def _address_range(wire: WireFleet, found: list[Mistake]) -> Network | None:
    if wire.address_range is None:
        return None
    try:
        return ipaddress.ip_network(wire.address_range)
    except ValueError as wrong:
        error = InvalidFleetError(f"not a range of addresses: {wrong}")
        found.append(Mistake(path=("address_range",), error=error))
        return None


def _each(
    table: Mapping[str, object],
    key: str,
    type_: type[_Wire],
    plan: Callable[[_Wire, KeyPath, list[Mistake]], _Planned],
    found: list[Mistake],
) -> tuple[_Planned, ...]:
    listed = table.get(key)
    if not isinstance(listed, list):
        return ()
    wires = [_read(raw, type_, (key, number), found) for number, raw in enumerate(listed)]
    return tuple(
        plan(wire, (key, number), found) for number, wire in enumerate(wires) if wire is not None
    )


def _read(raw: object, type_: type[_Wire], path: KeyPath, found: list[Mistake]) -> _Wire | None:
    """The declaration, or None with its mistakes added to those found."""
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError:
        # Read again, field by field, for every mistake in it: slowly, and only where there is one.
        reader = TableReader()
        table = reader.table(raw, type_, path)
        found += [
            Mistake(path=each.path, error=InvalidFleetError(each.why)) for each in reader.mistakes
        ]
        return table


def _host(wire: WireHost, _: KeyPath, __: list[Mistake]) -> DeclaredHost:
    return DeclaredHost(**_same(WireHost, wire))


def _virtual_machine(
    wire: WireVirtualMachine, path: KeyPath, found: list[Mistake]
) -> VirtualMachine:
    return VirtualMachine(
        **_same(WireVirtualMachine, wire),
        zone=str(wire.zone),
        model=_model(wire, path, found),
        policy=_policy(wire.policy),
    )


def _availability_set(
    wire: WireAvailabilitySet, path: KeyPath, found: list[Mistake]
) -> AvailabilitySet:
    if wire.count is not None and wire.vms:
        both = InvalidFleetError("give either count or vms, not both")
        found.append(Mistake(path=(*path, "count"), error=both))
    listed = [
        Member(name=vm) if isinstance(vm, str) else Member(**_same(WireMember, vm))
        for vm in wire.vms
    ]
    counted = [Member(name=f"{wire.name}-{index}") for index in range(wire.count or 0)]
    return AvailabilitySet(
        **_same(WireAvailabilitySet, wire),
        members=tuple(listed or counted),
        model=_model(wire, path, found),
        policy=_policy(wire.policy),
    )


def _scale_set(wire: WireScaleSet, path: KeyPath, found: list[Mistake]) -> ScaleSet:
    return ScaleSet(
        **_same(WireScaleSet, wire),
        zones=tuple(map(str, wire.zones)),
        model=_model(wire, path, found),
        policy=_policy(wire.policy),
    )


def _cloud_service(wire: WireCloudService, path: KeyPath, found: list[Mistake]) -> CloudService:
    roles = [
        CloudServiceRole(
            **_same(WireRole, role), model=_model(role, (*path, "roles", number), found)
        )
        for number, role in enumerate(wire.roles)
    ]
    return CloudService(
        **_same(WireCloudService, wire),
        roles=tuple(roles),
        policy=_policy(wire.policy),
    )


def _model(wire: _Modelled, path: KeyPath, found: list[Mistake]) -> Model:
    notice = None
    if wire.terminate_notification is not None:
        try:
            notice = parse_duration(wire.terminate_notification)
        except InvalidDurationError as wrong:
            error = InvalidFleetError(str(wrong))
            found.append(Mistake(path=(*path, "terminate_notification"), error=error))
    return Model(**_same(_Modelled, wire), terminate_notice=notice)


def _policy(wire: WirePolicy) -> Policy:
    version = wire.event_grid_version
    publishing = Publishing() if version is None else Publishing(enabled=True, api_version=version)
    return Policy(**_same(WirePolicy, wire), publishing=publishing)


# --- to the wire ---------------------------------------------------------------------------------


def _wire_parts(
    type_: type[_Part], declared: VirtualMachine | AvailabilitySet | ScaleSet
) -> dict[str, Any]:  # of each field's own type
    return {
        **_same(type_, declared),
        **_wire_model(declared.model),
        "policy": _wire_policy(declared.policy),
    }


def _wire_policy(policy: Policy) -> WirePolicy:
    publishing = policy.publishing
    version = publishing.api_version if publishing.enabled else None
    return WirePolicy(**_same(WirePolicy, policy), event_grid_version=version)


def _wire_model(model: Model) -> dict[str, Any]:  # of each field's own type
    notice = model.terminate_notice
    shown = None if notice is None else format_duration(notice)
    return {**_same(_Modelled, model), "terminate_notification": shown}


def _wire_member(member: Member) -> str | WireMember:
    is_name = member == Member(name=member.name)
    return member.name if is_name else WireMember(**_same(WireMember, member))
