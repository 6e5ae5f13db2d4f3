"""Test a handler of scheduled events in milliseconds: no root, no network, no sleep.

With pytest, ask for the fixture `scheduled_events`. Elsewhere:

    with forewarned.testing.serve() as scheduled_events:
        vm = scheduled_events.vm("web_0")
        event = vm.schedule("Reboot")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarned.testing._event import Event
    from forewarned.testing._faults import Fault, Faults
    from forewarned.testing._ledger import Request, WaitTimeoutError
    from forewarned.testing._play import ScenarioFailedError
    from forewarned.testing._service import ScheduledEventsService, serve
    from forewarned.testing._vm import Vm

__all__ = [
    "Event",
    "Fault",
    "Faults",
    "Request",
    "ScenarioFailedError",
    "ScheduledEventsService",
    "Vm",
    "WaitTimeoutError",
    "serve",
]

_PLACES = {
    "Event": "_event",
    "Fault": "_faults",
    "Faults": "_faults",
    "Request": "_ledger",
    "ScenarioFailedError": "_play",
    "ScheduledEventsService": "_service",
    "Vm": "_vm",
    "WaitTimeoutError": "_ledger",
    "serve": "_service",
}


def __getattr__(name: str) -> Any:  # whatever is exported
    """pytest imports this package for every project that has it; most tests never need the rest."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    try:
        module = import_module(f"{__name__}.{_PLACES[name]}")
    except ModuleNotFoundError as error:
        # The base install has this package, too, but not what serves.
        raise ModuleNotFoundError(
            f"{error}; forewarned.testing needs its extra: pip install 'forewarned[testing]', or "
            "until it is published, pip install '.[testing]' in a clone",
            name=error.name,
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
