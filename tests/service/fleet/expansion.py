"""The scopes of a whole plan at once, as tests look at them."""

from collections.abc import Mapping

from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.placement import PlannedScope
from forewarned.service.fleet.plan import Expansion
from forewarned.service.fleet.validation import mistakes


def expand(
    plan: FleetPlan, *, address_range: Network, kept: Mapping[str, str] | None = None
) -> list[PlannedScope]:
    """In the plan's order. `kept` are the addresses that VMs have now, by name."""
    for mistake in mistakes(plan):
        raise mistake.error
    folded = {name.casefold(): address for name, address in (kept or {}).items()}
    return list(Expansion(plan, address_range=address_range, kept=folded).scopes())
