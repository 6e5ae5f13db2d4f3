from collections.abc import Iterable

import pytest

from forewarned.clock import FollowingClock
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Document
from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.frames import FeedBrokenError
from forewarned.feed.protocol import (
    PROTOCOL,
    ClockSet,
    Committed,
    FirstVm,
    Fresh,
    Hello,
    Pages,
    Places,
    SnapshotEnd,
    State,
)
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory
from forewarned.service.records import PageContent, Place, ScopePlaces
from tests.builders import NOON

SCOPE1, SCOPE2 = ScopeId("scope1"), ScopeId("scope2")
VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")


class Poller:
    """A mirror and what it fills."""

    def __init__(self) -> None:
        self.board: Board[str] = Board(lambda document, _: str(document.incarnation))
        self.directory = MemoryDirectory()
        self.clock = FollowingClock()
        self.freshness: list[int] = []
        self.mirror = BoardMirror(
            self.board, self.directory, self.clock, fresh=self.freshness.append
        )

    def hears(self, *messages: State) -> None:
        for message in messages:
            self.mirror.take(message)

    def takes_a_snapshot(
        self, *pages: PageContent, places: Iterable[Place] = (), sequence: int = 0
    ) -> None:
        self.mirror.begin(hello(sequence))
        self.hears(Pages(list(pages)), Places([beside(place) for place in places]), SnapshotEnd())

    def incarnation(self, scope_id: ScopeId = SCOPE1) -> int | None:
        page = self.board.page(scope_id)
        return None if page is None else page.document.incarnation


def hello(sequence: int = 0, *, protocol: int = PROTOCOL) -> Hello:
    return Hello(protocol, "1.0", sequence)


def beside(place: Place) -> ScopePlaces:
    return ScopePlaces(place.scope_id, [place.name], [place.address])


def a_page(revision: int, *, scope_id: ScopeId = SCOPE1) -> PageContent:
    """At each revision the incarnation is ten times that."""
    document = Document(incarnation=10 * revision)
    return PageContent(scope_id=scope_id, revision=revision, is_active=True, document=document)


@pytest.fixture
async def poller() -> Poller:
    return Poller()


async def test_a_snapshot_is_shown(poller: Poller) -> None:
    poller.takes_a_snapshot(
        a_page(1), a_page(2, scope_id=SCOPE2), places=[Place(VM1, SCOPE1, "10.0.0.1")]
    )

    caller = poller.directory.by_address("10.0.0.1")
    assert poller.mirror.is_whole
    assert poller.incarnation(SCOPE1) == 10
    assert poller.incarnation(SCOPE2) == 20
    assert caller is not None
    assert caller.scope_id == SCOPE1


async def test_a_snapshot_is_not_whole_before_its_end(poller: Poller) -> None:
    """I24."""
    poller.mirror.begin(hello())
    poller.hears(Pages([a_page(1)]), Places([beside(Place(VM1, SCOPE1, "10.0.0.1"))]))

    assert not poller.mirror.is_whole
    assert poller.directory.by_name(VM1) is None


async def test_commits_are_followed_in_order(poller: Poller) -> None:
    poller.takes_a_snapshot(a_page(1), sequence=41)

    poller.hears(Committed(42, [a_page(2)]), Committed(43, [a_page(3)]))

    assert poller.incarnation() == 30


async def test_the_fleets_first_vm_is_the_writers_word_for_it(poller: Poller) -> None:
    places = [beside(Place(VM1, SCOPE1, "10.0.0.1")), beside(Place(VM2, SCOPE2, "10.0.0.2"))]
    poller.mirror.begin(hello())
    poller.hears(Places(places), FirstVm(VM2), SnapshotEnd())
    first = poller.directory.first()

    poller.hears(Committed(1, unbound=[VM2], first_vm=VM1), Committed(2, [a_page(1)]))
    second = poller.directory.first()
    poller.hears(Committed(3, unbound=[VM1]))

    assert [each and each.name for each in (first, second)] == [VM2, VM1]
    assert poller.directory.first() is None


@pytest.mark.parametrize("sequence", [41, 43, 0])
async def test_a_commit_out_of_order_breaks_the_feed(poller: Poller, sequence: int) -> None:
    """I25: no gap, no reorder."""
    poller.takes_a_snapshot(a_page(1), sequence=41)

    with pytest.raises(FeedBrokenError, match="came right after 41"):
        poller.hears(Committed(sequence, [a_page(2)]))

    assert poller.incarnation() == 10


async def test_what_was_committed_before_the_snapshot_was_read_does_not_go_back(
    poller: Poller,
) -> None:
    """I7, I25: the revision decides."""
    poller.mirror.begin(hello())
    poller.hears(
        Pages([a_page(3)]), Committed(1, [a_page(2)]), Committed(2, [a_page(3)]), SnapshotEnd()
    )

    assert poller.incarnation() == 30


async def test_a_place_that_was_taken_during_the_snapshot_is_the_last_one_taken(
    poller: Poller,
) -> None:
    """F18: the old VM's address is the new VM's alone."""
    poller.mirror.begin(hello())
    poller.hears(
        Places([beside(Place(VM2, SCOPE2, "10.0.0.1"))]),
        Committed(1, bound=[Place(VM1, SCOPE1, "10.0.0.1")]),
        Committed(2, unbound=[VM1]),
        Committed(3, bound=[Place(VM2, SCOPE2, "10.0.0.1")]),
        SnapshotEnd(),
    )

    caller = poller.directory.by_address("10.0.0.1")
    assert caller is not None
    assert caller.name == VM2
    assert poller.directory.by_name(VM1) is None


async def test_a_second_snapshot_takes_the_place_of_the_first_at_once(poller: Poller) -> None:
    """I24: until it is whole, the last documents and places are good."""
    poller.takes_a_snapshot(a_page(1), places=[Place(VM1, SCOPE1, "10.0.0.1")])
    poller.mirror.lose()

    poller.mirror.begin(hello(9))
    poller.hears(Pages([a_page(2)]), Places([beside(Place(VM2, SCOPE1, "10.0.0.2"))]))
    assert poller.directory.by_name(VM1) is not None
    assert poller.directory.by_name(VM2) is None
    poller.hears(SnapshotEnd())

    assert poller.directory.by_name(VM1) is None
    assert poller.directory.by_name(VM2) is not None
    assert poller.incarnation() == 20


async def test_a_poller_that_lost_the_writer_still_shows_what_it_had(poller: Poller) -> None:
    """I24."""
    poller.takes_a_snapshot(a_page(1), places=[Place(VM1, SCOPE1, "10.0.0.1")])

    poller.mirror.lose()

    assert not poller.mirror.is_whole
    assert poller.incarnation() == 10
    assert poller.directory.by_name(VM1) is not None


@pytest.mark.parametrize(
    "message", [Pages([]), Places([]), SnapshotEnd()], ids=lambda m: type(m).__name__
)
async def test_parts_of_a_snapshot_outside_of_one_break_the_feed(
    poller: Poller, message: State
) -> None:
    with pytest.raises(FeedBrokenError):
        poller.hears(message)

    poller.takes_a_snapshot()
    with pytest.raises(FeedBrokenError):
        poller.hears(message)


async def test_a_commit_before_the_greeting_breaks_the_feed(poller: Poller) -> None:
    with pytest.raises(FeedBrokenError):
        poller.hears(Committed(1))


async def test_a_writer_of_another_protocol_is_not_listened_to(poller: Poller) -> None:
    with pytest.raises(FeedBrokenError, match="restart the whole server"):
        poller.mirror.begin(hello(protocol=PROTOCOL + 1))


async def test_the_clock_is_the_writers(poller: Poller) -> None:
    poller.hears(ClockSet(NOON, 0))

    assert poller.clock.now() == NOON


async def test_what_is_shown_is_fresh_only_once_it_is_whole(poller: Poller) -> None:
    """I7: a VM that waits for news must not be shown half a snapshot."""
    poller.mirror.begin(hello())
    poller.hears(Pages([a_page(1)]), Fresh(1), SnapshotEnd(), Fresh(2))
    poller.mirror.lose()
    poller.hears(Fresh(3))

    assert poller.freshness == [2]
