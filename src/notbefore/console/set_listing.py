"""All scale sets at a glance: one pass over the fleet, however many there are."""

from collections import Counter
from dataclasses import dataclass

from notbefore.console.deeds import set_id
from notbefore.core.ids import ResourceName
from notbefore.core.model import EventType
from notbefore.service.ports import Declaration, Snapshot
from notbefore.service.resource_ids import SCALE_SETS, ResourceId, same, subscription_path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSummary:
    id: ResourceId
    staying: int
    leaving: int
    """Instances that are being deleted."""
    behind: int
    """Instances on an older model than the set's latest."""
    is_flexible: bool
    is_going: bool


def summaries(snapshot: Snapshot, subscription: str) -> list[SetSummary]:
    """In order of their paths."""
    declared = _declared(snapshot, subscription)
    ids = {key: ResourceId.parse(each.path) for key, each in declared.items()}
    leaving = _leaving(snapshot)
    stay: Counter[str] = Counter()
    leave: Counter[str] = Counter()
    behind: Counter[str] = Counter()
    flexible: set[str] = set()
    for binding in snapshot.bindings():
        profile = binding.profile
        if not profile.scale_set or not same(profile.subscription_id, subscription):
            continue
        id_ = set_id(profile)
        key = id_.path.casefold()
        ids.setdefault(key, id_)
        (leave if binding.name in leaving else stay)[key] += 1
        latest = declared[key].revision if key in declared else 0
        behind[key] += profile.model_revision != latest
        if profile.is_flexible:
            flexible.add(key)
    return [
        SetSummary(
            id=id_,
            staying=stay[key],
            leaving=leave[key],
            behind=behind[key],
            is_flexible=key in flexible,
            is_going=key in declared and declared[key].is_going,
        )
        for key, id_ in sorted(ids.items())
        # One that is being deleted is gone with the last of its instances.
        if stay[key] or leave[key] or not declared[key].is_going
    ]


def _declared(snapshot: Snapshot, subscription: str) -> dict[str, Declaration]:
    depth = ResourceId(subscription="s", group="g", type=SCALE_SETS, name="n").path.count("/")
    return {
        each.path.casefold(): each
        for each in snapshot.declarations(f"{subscription_path(subscription)}/")
        if each.path.count("/") == depth and same(ResourceId.parse(each.path).type, SCALE_SETS)
    }


def _leaving(snapshot: Snapshot) -> frozenset[ResourceName]:
    return frozenset(
        name
        for saved in snapshot.pages()
        for event in saved.document.events
        if event.type is EventType.TERMINATE
        for name in event.resources
    )
