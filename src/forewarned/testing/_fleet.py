"""Making VMs one at a time, as tests name them."""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Priority, Resource, Scope, ScopeKind
from forewarned.service.fleet.declaration import NO_SUBSCRIPTION, UPDATE_DOMAINS
from forewarned.service.fleet.placement import PlannedScope, guid
from forewarned.service.fleet.writes import Step, carry_out
from forewarned.service.ports import Transaction
from forewarned.service.records import Binding, Caller, Profile
from forewarned.service.use_cases import UseCases
from forewarned.testing._arguments import MistakeError
from forewarned.testing._server_thread import TEST

__tracebackhide__ = True

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,62}\w)?", re.ASCII)
_PLACE: Final = "test"
_LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSpec:
    """A VM as a test wants it."""

    name: str
    scale_set: str | None = None
    availability_set: str | None = None
    priority: Priority = Priority.REGULAR
    terminate_notice: timedelta | None = None
    is_active: bool = True

    def scope(self) -> tuple[ScopeId, ScopeKind]:
        """Raises MistakeError."""
        # Few tests are type-checked.
        names: tuple[object, ...] = (self.name, self.scale_set, self.availability_set)
        for name in names:
            if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
                raise MistakeError(
                    f"{name!r} is not a name: expected up to 64 letters, digits, hyphens, dots and"
                    " underscores, a letter or a digit first"
                )
        if self.scale_set is not None and self.availability_set is not None:
            raise MistakeError("a VM is in a scale set or in an availability set, not in both")
        if self.scale_set is not None:
            return ScopeId(f"vmss/{self.scale_set}/0"), ScopeKind.PLACEMENT_GROUP
        if self.availability_set is not None:
            return ScopeId(f"avset/{self.availability_set}"), ScopeKind.AVAILABILITY_SET
        return ScopeId(f"vm/{self.name}"), ScopeKind.VIRTUAL_MACHINE

    def shown(self) -> str:
        """As the call that makes such a VM has it, beside its name."""
        said = {
            "scale_set": self.scale_set,
            "availability_set": self.availability_set,
            "priority": None if self.priority is Priority.REGULAR else str(self.priority),
            "terminate_notice": None
            if self.terminate_notice is None
            else format_duration(self.terminate_notice),
            "active": None if self.is_active else False,
        }
        listed = [f"{name}={value!r}" for name, value in said.items() if value is not None]
        return f"with {', '.join(listed)}" if listed else "with its name alone"


async def make(use_cases: UseCases, spec: VmSpec) -> None:
    """Raises MistakeError, RefusalError."""
    scope_id, kind = spec.scope()
    work = partial(_enroll, spec=spec, scope_id=scope_id, kind=kind)
    await use_cases.engine.decide(work)
    if spec.is_active:
        caller = Caller(name=ResourceName(spec.name), scope_id=scope_id)
        await use_cases.activation.activate(caller, address=_LOOPBACK)


def _enroll(tx: Transaction, *, spec: VmSpec, scope_id: ScopeId, kind: ScopeKind) -> None:
    name = ResourceName(spec.name)
    others = len(tx.load(scope_id).resources) if tx.exists(scope_id) else 0
    resource = Resource(
        name=name,
        # Each has its own, so that what befalls one host befalls one VM.
        host=HostName(f"host-of-{name}"),
        update_domain=others % UPDATE_DOMAINS,
        priority=spec.priority,
        terminate_notice=spec.terminate_notice,
    )
    profile = Profile(
        vm_id=guid(f"vm/{name.casefold()}"),
        subscription_id=NO_SUBSCRIPTION,
        resource_group=_PLACE,
        location=_PLACE,
        size="Standard_D2s_v5",
        computer_name=name,
        scale_set=spec.scale_set or "",
        availability_set=spec.availability_set or "",
        placement_group_id=guid(scope_id) if spec.scale_set else "",
    )
    planned = PlannedScope(
        scope=Scope(id=scope_id, kind=kind, resources={name: resource}),
        # Without an address: tests go by the path alone.
        bindings=(Binding(name=name, scope_id=scope_id, address="", profile=profile),),
    )
    carry_out(tx, Step(planned=(planned,)), by=TEST)
