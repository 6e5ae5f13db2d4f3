"""Making VMs one at a time, as tests name them."""

from dataclasses import dataclass
from datetime import timedelta

from forewarned.config.durations import format_duration
from forewarned.core.model import Priority
from forewarned.scenarios import model
from forewarned.scenarios.stages import fleet
from forewarned.scenarios.values import NAME
from forewarned.service.use_cases import UseCases
from forewarned.testing._arguments import MistakeError
from forewarned.testing._server_thread import TEST

__tracebackhide__ = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSpec:
    """A VM as a test wants it."""

    name: str
    scale_set: str | None = None
    availability_set: str | None = None
    priority: Priority = Priority.REGULAR
    terminate_notice: timedelta | None = None
    is_active: bool = True

    def check(self) -> None:
        """Raises MistakeError."""
        # Few tests are type-checked.
        names: tuple[object, ...] = (self.name, self.scale_set, self.availability_set)
        for name in names:
            if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
                raise MistakeError(
                    f"{name!r} is not a name: expected up to 64 letters, digits, hyphens, dots and"
                    " underscores, starting with a letter or digit and not ending with a hyphen or"
                    " dot"
                )
        if self.scale_set is not None and self.availability_set is not None:
            raise MistakeError("a VM is in a scale set or in an availability set, not in both")

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
    spec.check()
    vm = model.Vm(
        name=spec.name,
        scale_set=spec.scale_set,
        availability_set=spec.availability_set,
        priority=spec.priority,
        terminate_notice=spec.terminate_notice,
        active=spec.is_active,
    )
    await fleet.make(use_cases, vm, by=TEST)
