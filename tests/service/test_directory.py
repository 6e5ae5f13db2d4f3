import gc
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory
from forewarned.service.records import Caller, Commit, PageContent, Place, Saved, ScopePlaces
from tests.builders import a_binding, a_scope

VMS = 50_000
VMS_PER_SCOPE = 100
VM1 = Caller(name=ResourceName("vm1"), scope_id=ScopeId("scope1"))
VM2 = Caller(name=ResourceName("vm2"), scope_id=ScopeId("scope2"))


def two_vms() -> MemoryDirectory:
    directory = MemoryDirectory()
    directory.bind(a_binding("vm1", scope_id="scope1", address="10.0.0.1"))
    directory.bind(a_binding("vm2", scope_id="scope2", address="10.0.0.2"))
    return directory


def test_a_vm_is_known_by_its_address_and_by_its_name() -> None:
    directory = two_vms()

    assert directory.by_address("10.0.0.1") == VM1
    assert directory.by_address("10.0.0.2") == VM2
    assert directory.by_name("vm1") == VM1


def test_a_name_is_known_in_any_letter_case_and_answered_in_its_own() -> None:
    assert two_vms().by_name("VM2") == VM2


def test_a_stranger_is_nobody() -> None:
    """I9, S3."""
    directory = two_vms()

    assert directory.by_address("10.0.0.9") is None
    assert directory.by_name("vm9") is None
    assert directory.by_address("") is None


def test_a_vm_without_an_address_is_known_by_name_only() -> None:
    directory = MemoryDirectory()

    directory.bind(a_binding("vm1", address=""))

    assert directory.by_name("vm1") == VM1
    assert directory.by_address("") is None


def test_a_vm_that_moves_to_another_address_leaves_its_old_one() -> None:
    directory = two_vms()

    directory.bind(a_binding("vm1", address="10.0.0.3"))

    assert directory.by_address("10.0.0.3") == VM1
    assert directory.by_address("10.0.0.1") is None


def test_a_vm_that_loses_its_address_is_not_known_by_it_any_more() -> None:
    directory = two_vms()

    directory.bind(a_binding("vm1", address=""))

    assert directory.by_address("10.0.0.1") is None
    assert directory.by_name("vm1") == VM1


places = st.builds(
    Place,
    name=st.sampled_from(["vm1", "VM1", "vm2", "vm3"]).map(ResourceName),
    scope_id=st.sampled_from(["scope1", "scope2"]).map(ScopeId),
    address=st.sampled_from(["", "10.0.0.1", "10.0.0.2", "10.0.0.3"]),
)


@given(st.lists(places, max_size=8), st.lists(places, max_size=8))
def test_very_many_places_are_known_as_if_each_had_come_alone(
    before: list[Place], coming: list[Place]
) -> None:
    """I9, F18: also those that come again, and those that others had."""
    alone, together = MemoryDirectory(), MemoryDirectory()
    for directory in (alone, together):
        directory.move(before)

    alone.move(coming)
    together.settle(ScopePlaces(scope_id, [name], [ip]) for name, scope_id, ip in coming)

    for address in ("", "10.0.0.1", "10.0.0.2", "10.0.0.3"):
        assert together.by_address(address) == alone.by_address(address)
    for name in ("vm1", "vm2", "vm3"):
        assert together.by_name(name) == alone.by_name(name)
    assert together.generation == alone.generation


def test_a_removed_vm_is_forgotten() -> None:
    """F18."""
    directory = two_vms()

    directory.hear(Commit(unbound=(VM1.name,)))

    assert directory.by_name("vm1") is None
    assert directory.by_address("10.0.0.1") is None
    assert directory.by_address("10.0.0.2") == VM2


def test_an_address_given_to_another_vm_in_the_same_commit_is_that_vms() -> None:
    """I9, F18: the new VM sees nothing of the old."""
    directory = two_vms()
    newcomer = a_binding("vm3", scope_id="scope3", address="10.0.0.1")

    directory.hear(Commit(unbound=(VM1.name,), bound=(newcomer,)))

    assert directory.by_address("10.0.0.1") == Caller(
        name=newcomer.name, scope_id=newcomer.scope_id
    )
    assert directory.by_name("vm1") is None


def test_an_address_given_away_before_its_vm_was_removed_stays_with_its_new_vm() -> None:
    """F18."""
    directory = two_vms()
    directory.bind(a_binding("vm2", scope_id="scope2", address="10.0.0.1"))

    directory.hear(Commit(unbound=(VM1.name,)))

    assert directory.by_address("10.0.0.1") == VM2


def test_two_vms_may_change_addresses_in_one_commit() -> None:
    """I9."""
    directory = two_vms()

    directory.hear(
        Commit(
            bound=(
                a_binding("vm1", scope_id="scope1", address="10.0.0.2"),
                a_binding("vm2", scope_id="scope2", address="10.0.0.1"),
            )
        )
    )

    assert directory.by_address("10.0.0.2") == VM1
    assert directory.by_address("10.0.0.1") == VM2


def test_forgetting_a_vm_that_is_not_known_changes_nobody_else() -> None:
    directory = two_vms()

    directory.hear(Commit(unbound=(ResourceName("vm9"),)))

    assert directory.by_address("10.0.0.1") == VM1


def test_the_generation_moves_when_somebody_may_be_somebody_else_now() -> None:
    directory = two_vms()
    before = directory.generation

    directory.hear(Commit())
    unmoved = directory.generation
    directory.hear(Commit(bound=(a_binding("vm3", address="10.0.0.3"),)))
    bound = directory.generation
    directory.hear(Commit(unbound=(ResourceName("vm3"),)))
    unbound = directory.generation

    assert unmoved == before
    assert before < bound < unbound


def test_the_generation_does_not_move_for_events() -> None:
    """I26: pollers look callers up anew only when the fleet has changed."""
    directory = two_vms()
    before = directory.generation

    directory.hear(Commit(scopes=(Saved(scope=a_scope(), revision=2),)))

    assert directory.generation == before


def test_a_directory_that_takes_another_over_knows_what_that_one_knew_and_nothing_else() -> None:
    directory, other = two_vms(), MemoryDirectory()
    other.move([Place(VM2.name, VM2.scope_id, "10.0.0.1")])
    before = directory.generation

    directory.take_over(other)

    assert directory.by_address("10.0.0.1") == VM2
    assert directory.by_address("10.0.0.2") is None
    assert directory.by_name("vm1") is None
    assert directory.generation != before


def test_a_vm_bound_again_in_another_letter_case_leaves_its_old_address() -> None:
    """I9."""
    directory = two_vms()

    directory.bind(a_binding("VM1", scope_id="scope1", address="10.0.0.3"))

    assert directory.by_address("10.0.0.1") is None
    assert directory.by_name("vm1") == directory.by_address("10.0.0.3")


def test_a_vm_whose_address_went_to_another_is_known_by_name_until_it_gets_one_again() -> None:
    """I9."""
    directory = two_vms()

    directory.bind(a_binding("vm2", scope_id="scope2", address="10.0.0.1"))
    between = directory.by_name("VM1")
    directory.bind(a_binding("vm1", scope_id="scope1", address="10.0.0.2"))

    assert between == VM1
    assert directory.by_address("10.0.0.1") == VM2
    assert directory.by_address("10.0.0.2") == directory.by_name("vm1") == VM1


def test_a_vm_that_had_no_address_is_forgotten_too() -> None:
    directory = MemoryDirectory()
    directory.bind(a_binding("vm1", address=""))

    directory.hear(Commit(unbound=(VM1.name,)))

    assert directory.by_name("vm1") is None


def test_a_vm_and_its_share_of_the_board_take_at_most_400_bytes() -> None:
    """P6. What a feed sends shares no text with anything, so neither does this."""
    # The first one may have to enlarge Python's own table of shared strings.
    assert min(_bytes_a_vm() for _ in range(2)) <= 400


def _bytes_a_vm() -> float:
    tracemalloc.start()
    try:
        directory = MemoryDirectory()
        board: Board[bytes] = Board(lambda _, __: b"")
        for scope in range(VMS // VMS_PER_SCOPE):
            saved = Saved(scope=a_scope(id=f"vmss/Set-{scope}/0"), revision=1)
            board.show(PageContent.of(saved))
            first = scope * VMS_PER_SCOPE
            directory.move(_place(number, scope) for number in range(first, first + VMS_PER_SCOPE))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert directory.by_name("set-0_99") is not None
    return taken / VMS


def _place(number: int, scope: int) -> Place:
    # With capitals, for which a folded name has to be kept beside the VM's own.
    name = ResourceName(f"Set-{scope}_{number}")
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return Place(name, ScopeId(f"vmss/Set-{scope}/0"), address)
