"""Instances of a Uniform scale set that are protected from actions on the whole set.

Invariant: protection is of one VM. It goes with that VM, and another one that comes under its name
has none.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import ResourceName
from forewarned.service.azure.inventory import ScaleSetView, VmView, scale_set_id
from forewarned.service.azure.resource_ids import ResourceId
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, Declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    from_scale_in: bool = False
    from_set_actions: bool = False
    """From actions on the whole set, which do not name this VM, and also from scale-in."""

    @property
    def outlives_scale_in(self) -> bool:
        return self.from_scale_in or self.from_set_actions


NONE: Final = Protection()


class NotProtectableError(RefusalError, category=Category.CONFLICT, field="protectionPolicy"):
    def __init__(self, name: ResourceName) -> None:
        super().__init__(
            f"VM {name!r} is in a Flexible scale set, and only instances of Uniform sets can be"
            " protected"
        )
        self.name = name


class ProtectedError(RefusalError, category=Category.CONFLICT, field="capacity"):
    def __init__(self, set_name: str, *, protected: int, wanted: int) -> None:
        held = "1 instance is" if protected == 1 else f"{protected} instances are"
        super().__init__(
            f"scale set {set_name!r} can't be scaled in to {wanted}: {held} protected from"
            " scale-in. Remove the protection, or delete instances by their ids"
        )
        self.set_name = set_name
        self.protected = protected
        self.wanted = wanted


def of_set(snapshot: Snapshot, view: ScaleSetView) -> Mapping[ResourceName, Protection]:
    """By VM, for the VMs that are protected."""
    kept = {each.path.casefold(): each for each in snapshot.declarations(_folder(view.id))}
    found = {vm.name: kept.get(_path(vm).casefold()) for vm in view.vms}
    return {
        name: Protection(**json.loads(each.document))
        for name, each in found.items()
        if each is not None
    }


def put(tx: Transaction, vm: VmView, protection: Protection) -> None:
    if not vm.is_instance:
        raise NotProtectableError(vm.name)
    if protection == NONE:
        tx.withdraw(_path(vm))
        return
    document = json.dumps(asdict(protection))
    tx.declare(Declaration(path=_path(vm), document=document, created_at=tx.now))


def withdraw(tx: Transaction, binding: Binding) -> None:
    """Called when the VM is removed."""
    if binding.profile.scale_set:
        tx.withdraw(_path(binding))


def refuse_too_small(
    set_name: str, staying: Iterable[VmView], protected: Iterable[ResourceName], *, wanted: int
) -> None:
    """Raises ProtectedError."""
    held = len(frozenset(protected) & {vm.name for vm in staying})
    if held > wanted:
        raise ProtectedError(set_name, protected=held, wanted=wanted)


def _folder(id_: ResourceId) -> str:
    return f"{id_.path}/protected/"


def _path(vm: VmView | Binding) -> str:
    return f"{_folder(scale_set_id(vm.profile))}{vm.name}"
