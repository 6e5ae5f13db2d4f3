"""Which of many bindings change anything, and which are refused."""

from collections.abc import Collection, Iterable, Mapping

from forewarned.core.copying import replace
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service.errors import AddressTakenError, NameTakenError
from forewarned.service.records import Binding
from forewarned.storage import rows
from forewarned.storage.diff import Delta, fold
from forewarned.storage.rows import FoundRow


def bindings_that_change(wanted: Iterable[Binding], found: Collection[FoundRow]) -> list[Binding]:
    """As if each were bound before the next: an address that one gives up is free for the next.

    `found` are the VMs to bind and those that hold an address that one of them is to get.
    """
    vms = {row["folded"]: (ResourceName(row["name"]), ScopeId(row["scope_id"])) for row in found}
    bound = {row["folded"]: rows.to_binding(row) for row in found if row["profile"] is not None}
    holders = {former.address: folded for folded, former in bound.items() if former.address}
    changed = []
    for each in wanted:
        folded = fold(each.name)
        name, scope_id = vms.get(folded, (each.name, None))
        if scope_id != each.scope_id:
            raise UnknownResourceError(each.name)
        holder = holders.get(each.address, folded)
        if holder != folded:
            raise AddressTakenError(each.address, vms[holder][0])
        former, binding = bound.get(folded), each if each.name == name else replace(each, name=name)
        if former == binding:
            continue
        if former is not None:
            holders.pop(former.address, None)
        if binding.address:
            holders[binding.address] = folded
        bound[folded] = binding
        changed.append(binding)
    return changed


def refuse_taken(
    differences: Collection[Delta],
    joining: Mapping[ResourceName, Binding],
    found: Collection[FoundRow],
) -> None:
    """Refuse VMs to be added whose names or addresses others have, or that share them.

    `joining` are their bindings, and `found` the VMs that have such a name or address.
    """
    owners: dict[str, ScopeId] = {row["folded"]: row["scope_id"] for row in found}
    holders: dict[str, ResourceName] = {row["address"]: row["name"] for row in found}
    for difference in differences:
        for vm in difference.added:
            owner = owners.setdefault(fold(vm.name), difference.scope.id)
            if owner != difference.scope.id:
                raise NameTakenError(vm.name, owner)
            binding = joining.get(vm.name)
            if binding is None or not binding.address:
                continue
            holder = holders.setdefault(binding.address, vm.name)
            if holder != vm.name:
                raise AddressTakenError(binding.address, holder)
