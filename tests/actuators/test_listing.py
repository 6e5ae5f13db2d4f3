"""When VMs come into a fleet, change and leave it, by what their platform lists."""

from forewarned.actuators.listing import ListedVm, Listing, Roster, compare

WEB = ListedVm(vm_id="u-web", name="web", host="hv-a", address="10.0.0.1")
DB = ListedVm(vm_id="u-db", name="db", host="hv-b", address="10.0.0.2")
BOTH = Roster(vms={"u-web": WEB, "u-db": DB})
SILENT = {"hv-b": "it does not answer"}


def test_vms_that_are_listed_first_are_added() -> None:
    difference = compare(Roster(), Listing(vms=(WEB, DB)))

    assert (difference.added, difference.changed, difference.removed) == ((WEB, DB), (), ())
    assert difference.roster == BOTH


def test_a_vm_is_removed_only_after_two_complete_listings_without_it() -> None:
    first = compare(BOTH, Listing(vms=(WEB,)))
    second = compare(first.roster, Listing(vms=(WEB,)))

    assert (first.removed, second.removed) == ((), (DB,))
    assert second.roster == Roster(vms={"u-web": WEB})


def test_a_host_that_does_not_answer_removes_nothing() -> None:
    first = compare(BOTH, Listing(vms=(WEB,), silent=SILENT))
    second = compare(first.roster, Listing(vms=(WEB,), silent=SILENT))

    assert (first.removed, second.removed) == ((), ())
    assert second.roster == BOTH


def test_an_incomplete_listing_between_two_complete_ones_forgets_nothing() -> None:
    first = compare(BOTH, Listing(vms=(WEB,)))
    silent = compare(first.roster, Listing(vms=(WEB,), silent=SILENT))
    last = compare(silent.roster, Listing(vms=(WEB,)))

    assert (silent.removed, last.removed) == ((), (DB,))


def test_a_vm_that_was_seen_again_is_not_missed_any_more() -> None:
    first = compare(BOTH, Listing(vms=(WEB,)))
    back = compare(first.roster, Listing(vms=(WEB, DB), silent={"hv-c": "?"}))
    gone = compare(back.roster, Listing(vms=(WEB,)))

    assert (back.added, gone.removed) == ((), ())


def test_a_rename_and_a_move_change_a_vm_and_another_uuid_is_another_vm() -> None:
    """F18: a VM that was made again is a new one, though it has the name of the old."""
    moved = ListedVm(vm_id="u-web", name="www", host="hv-b", address="10.0.0.1")
    again = ListedVm(vm_id="u-new", name="db", host="hv-b", address="10.0.0.2")

    difference = compare(BOTH, Listing(vms=(moved, again)))

    assert (difference.added, difference.changed, difference.removed) == ((again,), (moved,), ())
    assert difference.roster.missed == {"u-db"}
