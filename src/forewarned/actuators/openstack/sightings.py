"""A VM as Nova's records show it. Pure.

The key of a task is in the VM's metadata, which its owner may change. So the mark that an action
was issued is the id of Nova's own record of that action, and counts only if Nova has that record.
"""

from collections.abc import Iterable
from typing import Final

from forewarned.actuators.driver import Power, Sighting
from forewarned.actuators.openstack.wire import InstanceAction, MigrationRecord, Server

INTENT: Final = "forewarned_task"
"""The metadata item with the key of the task that was marked last."""
ISSUED: Final = "forewarned_request"
"""The metadata item with the id of Nova's record of what was done for it; empty before that."""

_RESTARTS: Final = frozenset(
    {"create", "evacuate", "migrate", "reboot", "rebuild", "resize", "revertResize", "start"}
    | {"unshelve"}
)
"""Actions after which a guest boots."""
_OURS: Final = frozenset({"confirmResize", "delete", "live-migration", "migrate", "reboot", "stop"})
"""Actions that the driver asks for."""
_GONE: Final = frozenset({"deleted", "soft-delete"})
_OFF: Final = frozenset({"stopped", "shelved", "shelved_offloaded", "building"})
_POWERS: Final = {1: Power.RUNNING, 3: Power.PAUSED, 7: Power.PAUSED}
"""By Nova's number. Any other is a VM that does not run."""
MOVED: Final = "resized"
"""The state of a VM that was moved and waits to be confirmed or reverted."""


def sighting(
    server: Server | None,
    actions: Iterable[InstanceAction],
    migration: MigrationRecord | None,
) -> Sighting:
    """`actions` and `migration`: the newest first, and the newest; None if there was none."""
    if server is None or server.vm_state in _GONE:
        return Sighting(power=Power.GONE)
    succeeded = [each for each in actions if each.message != "Error"]
    ours = {each.request_id for each in succeeded if each.action in _OURS}
    restarts = [each.request_id for each in succeeded if each.action in _RESTARTS]
    return Sighting(
        host=_host(server, migration),
        power=power(server),
        witness=restarts[0] if restarts else "",
        # Nova records an action before it begins.
        conclusive=True,
        intent=server.metadata.get(INTENT, ""),
        issued=server.metadata.get(ISSUED, "") in ours,
        job="" if server.task_state is None else server.task_state.replace("_", " "),
    )


def _host(server: Server, migration: MigrationRecord | None) -> str | None:
    """Until a move is confirmed, Nova keeps the VM's place on the host it came from."""
    if server.vm_state == MOVED and migration is not None:
        return migration.source_compute
    return server.host


def power(server: Server) -> Power:
    if server.vm_state in _GONE:
        return Power.GONE
    if server.vm_state in _OFF:
        return Power.OFF
    return _POWERS.get(server.power_state, Power.OFF)


def awaits_confirmation(server: Server, migration: MigrationRecord | None) -> bool:
    """Whether it was moved by a cold migration, and not resized by its owner."""
    is_cold = migration is not None and migration.migration_type == "migration"
    return server.vm_state == MOVED and is_cold
