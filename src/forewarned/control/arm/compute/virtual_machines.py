"""Virtual machines that are resources of their own: declared, shown, operated, deleted."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from forewarned.control.arm.answers import ArmAnswer, accepted, created, no_content, ok, updated
from forewarned.control.arm.compute.actions import actions_on
from forewarned.control.arm.compute.api_versions import refuse_events_profile
from forewarned.control.arm.compute.vm_views import instance_view, shown
from forewarned.control.arm.errors import bad_request, invalid_parameter
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import (
    AT_LOCATION,
    GROUP,
    SUBSCRIPTION,
    Decision,
    Operation,
    delete,
    patch,
    post,
    put,
    read,
)
from forewarned.security.identities import Role
from forewarned.service.azure import inventory, operations, vms
from forewarned.service.azure.actions import Action
from forewarned.service.azure.context import Outcome
from forewarned.service.azure.inventory import VmView
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import MACHINES, SCALE_SETS, ResourceId, same
from forewarned.service.azure.vms import UnknownVmError, VmOutcome
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, OperationRecord

_EXPANSIONS: Final = frozenset({"instanceview", "userdata"})
"""User data is never shown, so asking for it adds nothing."""
_IN_SET: Final = re.compile(
    r"\s*'?virtualMachineScaleSet/id'?\s+eq\s+'(?P<id>[^']+)'\s*", re.IGNORECASE
)


# --- declaring -----------------------------------------------------------------------------------


def put_in(tx: Transaction, asked: Asked, id_: ResourceId, body: Mapping[str, Any]) -> VmOutcome:
    """Create or change the VM, as part of a transaction. Also for deployments."""
    _refuse_old_version(body, asked)
    return vms.put(tx, id_, body, context=asked.context)


def _refuse_old_version(body: Mapping[str, Any], asked: Asked) -> None:
    refuse_events_profile(body, asked, "properties", "VirtualMachineProperties")


def put_vm(tx: Transaction, asked: Asked) -> ArmAnswer:
    outcome = put_in(tx, asked, _id(asked), asked.body or {})
    answer = created if outcome.created else updated
    return answer(shown(tx, outcome.view), _open(tx, asked, outcome, "put"), asked)


def patch_vm(tx: Transaction, asked: Asked) -> ArmAnswer:
    vm, sent = _find(tx, asked), asked.body or {}
    _refuse_old_version(sent, asked)
    outcome = vms.change(tx, vm, sent, context=asked.context)
    return updated(shown(tx, outcome.view), _open(tx, asked, outcome, "put"), asked)


def delete_vm(tx: Transaction, asked: Asked) -> ArmAnswer:
    force = asked.is_set("forceDeletion")
    outcome = vms.drop(tx, _id(asked), force=force, context=asked.context)
    if outcome is None:
        return no_content()
    return accepted(_open(tx, asked, outcome, "delete"), asked)


def _open(tx: Transaction, asked: Asked, outcome: VmOutcome, action: str) -> OperationRecord:
    path = inventory.resource_id(outcome.view).path
    return operations.open_(tx, path, action, outcome.event_ids, context=asked.context)


# --- showing -------------------------------------------------------------------------------------


def show_vm(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    expanded = _expanded(asked)
    return ok(shown(snapshot, _find(snapshot, asked), with_instance_view=expanded))


def show_instance_view(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(instance_view(_find(snapshot, asked)))


def list_extensions(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """An empty list: nothing is installed in a VM here."""
    _find(snapshot, asked)
    return ok({"value": []})


def list_vms(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of a resource group, of a location, or of the subscription."""
    expanded = _expanded(asked) or asked.is_set("statusOnly")
    is_wanted = _filter(asked)

    def show(binding: Binding) -> Json:
        vm = inventory.by_name(snapshot, binding.name)
        assert vm is not None  # noqa: S101  # a snapshot agrees with itself
        return shown(snapshot, vm, with_instance_view=expanded)

    bindings = inventory.own_bindings(snapshot, *groups.listed_in(snapshot, asked))
    here = (each for each in bindings if asked.is_of_list(each.profile.location))
    return ok(page(filter(is_wanted, here), asked, _key, show=show))


def _key(binding: Binding) -> str:
    return binding.name.casefold()


def _filter(asked: Asked) -> Callable[[Binding], bool]:
    text = asked.option("$filter")
    if text is None:
        return lambda _: True
    found = _IN_SET.fullmatch(text)
    if found is None:
        raise bad_request(
            "InvalidFilterInQueryString",
            f"Invalid $filter '{text[:200]}': expected"
            " \"'virtualMachineScaleSet/id' eq '{id}'\".",
            target="$filter",
        )
    id_ = ResourceId.parse(found["id"])
    if not same(id_.type, SCALE_SETS):
        raise invalid_parameter("$filter", "The $filter needs the id of a scale set.")
    return lambda binding: same(inventory.scale_set_id(binding.profile).path, id_.path)


def _expanded(asked: Asked) -> bool:
    """Whether the instance view is wanted."""
    wanted = (asked.option("$expand") or "").replace(" ", "").lower().split(",")
    unknown = [each for each in wanted if each and each not in _EXPANSIONS]
    if unknown:
        raise invalid_parameter(
            "$expand", f"'{unknown[0][:60]}' can't be expanded: expected instanceView or userData."
        )
    return "instanceview" in wanted


def _find(snapshot: Snapshot, asked: Asked) -> VmView:
    """Raises UnknownVmError, and UnknownGroupError if its group does not exist either."""
    id_ = _id(asked)
    vm = inventory.virtual_machine(snapshot, id_)
    if vm is None:
        groups.find_asked(snapshot, asked)
        raise UnknownVmError(id_.path)
    return vm


# --- operating -----------------------------------------------------------------------------------


def _operate(action: Action) -> Decision:
    def operate(tx: Transaction, asked: Asked) -> ArmAnswer:
        outcome = vms.operate(tx, _find(tx, asked), action, context=asked.context)
        return accepted(_open(tx, asked, outcome, action), asked)

    return operate


def simulate_eviction(tx: Transaction, asked: Asked) -> ArmAnswer:
    """Not a long-running operation: clients accept nothing but 204."""
    vms.operate(tx, _find(tx, asked), Action.EVICT, context=asked.context)
    return no_content()


def reapply(tx: Transaction, asked: Asked) -> ArmAnswer:
    """A VM is always as it is declared, so there is nothing to correct."""
    return accepted(_open(tx, asked, Outcome(view=_find(tx, asked)), "reapply"), asked)


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(MACHINES, asked.path["name"])


_ONE: Final = f"{GROUP}/providers/{MACHINES}/{{name}}"


OPERATIONS: Final[tuple[Operation, ...]] = (
    put(_ONE, put_vm),
    patch(_ONE, patch_vm),
    read(_ONE, show_vm),
    delete(_ONE, delete_vm),
    read(f"{_ONE}/instanceView", show_instance_view),
    read(f"{GROUP}/providers/{MACHINES}", list_vms),
    read(f"{SUBSCRIPTION}/providers/{MACHINES}", list_vms),
    read(f"{AT_LOCATION}/virtualMachines", list_vms),
    read(f"{_ONE}/extensions", list_extensions),
    *actions_on(_ONE, _operate),
    post(f"{_ONE}/simulateEviction", simulate_eviction, needs=Role.MAINTAINER),
    post(f"{_ONE}/reapply", reapply),
)
