"""By what a server knows that it has applied a fleet file before."""

from dataclasses import dataclass, field
from datetime import timedelta

from forewarned.control.fleet.wire import parse
from forewarned.core.model import Priority
from forewarned.service.fleet.digest import canonical, digest

FLEET = {
    "location": "here",
    "address_range": "10.0.0.0/24",
    "actuator": "rack1",
    "vms": [
        {"name": "web", "tags": {"b": "2", "a": "1"}, "terminate_notification": "5m", "zone": 1},
        {"name": "spot", "priority": "Spot"},
    ],
    "availability_sets": [{"name": "db", "vms": ["db-0", {"name": "db-1", "host": "hv-a"}]}],
    "scale_sets": [{"name": "api", "capacity": 3, "zones": [1, 2]}],
}


@dataclass(frozen=True)
class Before:
    name: str
    priority: Priority = Priority.REGULAR
    notice: timedelta | None = None


@dataclass(frozen=True)
class After:
    """The same declaration in a later version, which knows more fields."""

    zone: str = ""
    name: str = ""
    notice: timedelta | None = None
    priority: Priority = Priority.REGULAR
    tags: dict[str, str] = field(default_factory=dict)


def test_a_plan_has_the_digest_that_it_had_in_versions_before() -> None:
    """Never edit this digest: a server that is upgraded would bring back VMs that are gone."""
    assert (
        digest(parse(FLEET)) == "d57ec9ad755bf84c83e499961ca57ec2a490d4bd49dfb03c3fdee45e5c86c8c3"
    )


def test_a_field_that_an_older_version_did_not_have_changes_nothing_until_it_is_used() -> None:
    old = Before(name="web", priority=Priority.SPOT, notice=timedelta(minutes=5))
    new = After(name="web", priority=Priority.SPOT, notice=timedelta(minutes=5))

    assert canonical(new) == canonical(old)
    assert canonical(After(name="web", zone="1")) != canonical(Before(name="web"))


def test_another_plan_has_another_digest() -> None:
    other = FLEET | {"vms": [{"name": "web"}]}

    assert digest(parse(other)) != digest(parse(FLEET))
    assert digest(parse(FLEET | {"hosts": [{"name": "hv-a", "actuator": "x"}]})) != digest(
        parse(FLEET)
    )
