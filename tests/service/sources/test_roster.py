"""When VMs come into a fleet, change and leave it, by what their platform lists."""

from datetime import datetime

from forewarned.service.sources.listing import ListedVm, Listing
from forewarned.service.sources.roster import APART, Difference, FleetView, Roster, compare
from tests.builders import NOON, SECOND

WEB = ListedVm(vm_id="u-web", name="web", host="hv-a", address="10.0.0.1")
DB = ListedVm(vm_id="u-db", name="db", host="hv-b", address="10.0.0.2")
BOTH = Roster(brought=frozenset({"u-web", "u-db"}))
OWN = FleetView(own=frozenset({"u-web", "u-db"}))
SILENT = {"hv-b": "it does not answer"}
LATER = NOON + APART


def look(
    roster: Roster,
    *vms: ListedVm,
    fleet: FleetView = OWN,
    silent: dict[str, str] | None = None,
    now: datetime = NOON,
    began_at: datetime | None = None,
) -> Difference:
    listing = Listing(vms=vms, silent=silent or {})
    return compare(roster, listing, fleet, began_at=began_at or now, now=now)


def test_vms_that_are_listed_first_are_added() -> None:
    difference = look(Roster(), WEB, DB, fleet=FleetView())

    assert (difference.added, difference.changed, difference.removed) == ((WEB, DB), (), ())
    assert difference.roster == BOTH


def test_a_vm_is_removed_only_after_two_complete_listings_without_it() -> None:
    first = look(BOTH, WEB)
    second = look(first.roster, WEB, now=LATER)

    assert (first.removed, second.removed) == ((), ("u-db",))
    assert second.roster == Roster(brought=frozenset({"u-web"}))


def test_two_listings_at_once_as_of_two_nodes_count_as_one() -> None:
    first = look(BOTH, WEB)
    other = look(first.roster, WEB, now=LATER - SECOND)
    last = look(other.roster, WEB, now=LATER)

    assert (other.removed, last.removed) == ((), ("u-db",))


def test_a_host_that_does_not_answer_removes_nothing() -> None:
    first = look(BOTH, WEB, silent=SILENT)
    second = look(first.roster, WEB, silent=SILENT, now=LATER)

    assert (first.removed, second.removed) == ((), ())
    assert second.roster == BOTH


def test_an_incomplete_listing_between_two_complete_ones_forgets_nothing() -> None:
    first = look(BOTH, WEB)
    silent = look(first.roster, WEB, silent=SILENT, now=LATER)
    last = look(silent.roster, WEB, now=LATER)

    assert (silent.removed, last.removed) == ((), ("u-db",))


def test_a_vm_that_was_seen_again_is_not_missed_any_more() -> None:
    first = look(BOTH, WEB)
    back = look(first.roster, WEB, DB, silent={"hv-c": "?"})
    gone = look(back.roster, WEB, now=LATER)

    assert (back.added, gone.removed) == ((), ())


def test_a_listing_that_began_before_the_last_one_came_in_does_not_count_as_a_second() -> None:
    """It may have asked the platform at the same moment, and been slow."""
    first = look(BOTH, WEB)
    slow = look(first.roster, WEB, began_at=NOON, now=LATER)

    assert slow.removed == ()
    assert slow.roster == first.roster


def test_a_vm_that_the_fleet_has_elsewhere_changes_and_another_uuid_is_another_vm() -> None:
    """F18: a VM that was made again is a new one, though it has the name of the old."""
    moved = ListedVm(vm_id="u-web", name="web", host="hv-b", address="10.0.0.1")
    again = ListedVm(vm_id="u-new", name="db", host="hv-b", address="10.0.0.2")
    fleet = FleetView(own=OWN.own, differing=frozenset({"u-web"}))

    difference = look(BOTH, moved, again, fleet=fleet)

    assert (difference.added, difference.changed, difference.removed) == ((again,), (moved,), ())
    assert difference.roster.missed == {"u-db": NOON}


def test_a_vm_whose_event_had_started_when_it_was_listed_is_left_to_its_actuator() -> None:
    differing = frozenset({"u-db"})
    busy = FleetView(own=OWN.own, differing=differing, busy=frozenset({"u-db"}))
    over = FleetView(own=OWN.own, differing=differing)

    gone = look(look(BOTH, WEB, fleet=busy).roster, WEB, fleet=busy, now=LATER)
    elsewhere = look(gone.roster, WEB, DB, fleet=busy, now=LATER)
    after = look(elsewhere.roster, WEB, DB, fleet=over, now=LATER)

    assert (gone.removed, elsewhere.changed, after.changed) == ((), (), (DB,))


def test_a_vm_that_has_left_the_fleet_comes_back_only_if_its_platform_keeps_it() -> None:
    """A listing may be older than the end of the event that has deleted the VM."""
    left = FleetView(own=frozenset({"u-web"}))

    first = look(BOTH, WEB, DB, fleet=left)
    second = look(first.roster, WEB, DB, fleet=left, now=LATER - SECOND)
    gone = look(second.roster, WEB, fleet=left, now=LATER)
    kept = look(second.roster, WEB, DB, fleet=left, now=LATER)

    assert (first.added, second.added, gone.added, kept.added) == ((), (), (), (DB,))
    assert gone.roster == Roster(brought=frozenset({"u-web"}))


def test_vms_that_others_have_declared_are_neither_added_nor_removed() -> None:
    fleet = FleetView(own=frozenset({"u-web"}), others=frozenset({"u-db"}))
    mine = Roster(brought=frozenset({"u-web"}))

    listed = look(mine, WEB, DB, fleet=fleet)
    absent = look(look(mine, WEB, fleet=fleet).roster, WEB, fleet=fleet, now=LATER)

    assert listed.is_empty
    assert absent.is_empty
