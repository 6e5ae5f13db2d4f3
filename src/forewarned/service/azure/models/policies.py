"""`scheduledEventsPolicy`, which VMs, availability sets and scale sets have alike."""

from typing import Final

from forewarned.core.model import NO_PUBLISHING, Policy, Publishing
from forewarned.service.azure.models.documents import (
    Fields,
    InvalidPropertyError,
    Json,
    decoded,
    put_at,
)
from forewarned.service.events.api_versions import EVENT_VERSIONS, NEWEST_EVENT_VERSIONS
from forewarned.service.records import Declaration

POLICY: Final = "scheduledEventsPolicy"
"""Its name, in `properties`."""

_REBOOT: Final = "userInitiatedReboot"
_REDEPLOY: Final = "userInitiatedRedeploy"
_ALL_DOWN: Final = "allInstancesDown"
_APPROVE: Final = "automaticallyApprove"
_TARGETS: Final = "scheduledEventsAdditionalPublishingTargets"
_GRID: Final = "eventGridAndResourceGraph"
_ENABLE: Final = "enable"
_VERSION: Final = "scheduledEventsApiVersion"

_VERSIONS: Final = {version: version for version in EVENT_VERSIONS}


def read_policy(properties: Fields) -> Policy:
    """The policy that a resource's `properties` declare; the default one if they declare none."""
    given = properties.object(POLICY)
    usual = Policy()
    return Policy(
        approves_user_reboot=_approves(given, _REBOOT, usual=usual.approves_user_reboot),
        approves_user_redeploy=_approves(given, _REDEPLOY, usual=usual.approves_user_redeploy),
        approves_when_all_down=_approves(given, _ALL_DOWN, usual=usual.approves_when_all_down),
        publishing=_read_publishing(given.object(_TARGETS).object(_GRID)),
    )


def stored_publishing(declaration: Declaration) -> Publishing:
    """Off if an earlier version stored an invalid policy unchecked."""
    # Most say nothing of it, and need not be read.
    if _GRID not in declaration.document:
        return NO_PUBLISHING
    try:
        return read_policy(Fields(decoded(declaration)).object("properties")).publishing
    except InvalidPropertyError:
        return NO_PUBLISHING


def settle_policy(document: Json) -> None:
    """Give the flags of a resource's policy the type they are shown in, and check its version."""
    policy = Fields(document).object("properties").object(POLICY)
    for name in (_REBOOT, _REDEPLOY, _ALL_DOWN):
        _settle_flag(document, policy.object(name), _APPROVE)
    grid = policy.object(_TARGETS).object(_GRID)
    _settle_flag(document, grid, _ENABLE)
    grid.one_of(_VERSION, _VERSIONS)


def show_policy(policy: Policy) -> Json | None:
    """For a resource whose policy came with the fleet; None for the default policy."""
    if policy == Policy():
        return None
    publishing = policy.publishing
    grid = {_ENABLE: publishing.enabled, _VERSION: publishing.api_version}
    targets = {_TARGETS: {_GRID: grid}} if publishing.enabled else {}
    return {
        _REBOOT: {_APPROVE: policy.approves_user_reboot},
        _REDEPLOY: {_APPROVE: policy.approves_user_redeploy},
        _ALL_DOWN: {_APPROVE: policy.approves_when_all_down},
        **targets,
    }


def _read_publishing(given: Fields) -> Publishing:
    """In the newest version, if a client names none: `az` has an option for each."""
    if not given.flag(_ENABLE):
        return NO_PUBLISHING
    version = given.word(_VERSION) or NEWEST_EVENT_VERSIONS[0]
    return Publishing(enabled=True, api_version=version)


def _approves(given: Fields, name: str, *, usual: bool) -> bool:
    declared = given.object(name).flag(_APPROVE)
    return usual if declared is None else declared


def _settle_flag(document: Json, holder: Fields, name: str) -> None:
    flag = holder.flag(name)
    if flag is not None:
        put_at(document, holder.where(name), flag)
