"""What is to go wrong between VMs and an emulator."""

from forewarned.control.http.operations import Asked
from forewarned.control.v1 import views, wire
from forewarned.control.v1.request_wire import AddFault, Nothing
from forewarned.control.v1.services import Services
from forewarned.core.errors import UnknownResourceError


async def add_fault(services: Services, asked: Asked[AddFault, Nothing]) -> wire.Fault:
    """Add a fault: make the emulator misbehave towards VMs."""
    fault = asked.body.fault()
    name = fault.vm
    # A fault for a misspelt VM would never happen, and no one would know why.
    if name is not None and await services.engine.ask(lambda s: s.binding(name)) is None:
        raise UnknownResourceError(name).at("vm")
    return views.fault(services.use_cases.faults.add(fault))


async def list_faults(services: Services, _: Asked[Nothing, Nothing]) -> wire.Faults:
    """Faults, oldest first."""
    return views.faults(services.use_cases.faults.show())


async def clear_faults(services: Services, _: Asked[Nothing, Nothing]) -> wire.Faults:
    """Remove every fault."""
    return views.faults(services.use_cases.faults.clear())


async def remove_fault(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Fault:
    """Remove a fault."""
    return views.fault(services.use_cases.faults.remove(asked.path["fault_id"]))
