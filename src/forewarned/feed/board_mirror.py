"""A poller's memory: what the feed says, put where the metadata listener looks.

Invariant: what VMs are shown is what the store held at some moment, and for one
scope never an older document after a newer one. A new snapshot takes the old one's place bit by
bit for pages, by their revisions, and in one go for places.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, assert_never

from forewarned.clock import FollowingClock
from forewarned.feed.frames import FeedBrokenError
from forewarned.feed.protocol import (
    PROTOCOL,
    ClockSet,
    Committed,
    FaultsSet,
    FirstVm,
    Fresh,
    Hello,
    Pages,
    Places,
    SnapshotEnd,
    State,
    Watched,
)
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory
from forewarned.service.faults import Fault
from forewarned.service.records import PageContent

Rendered = TypeVar("Rendered")


class BoardMirror(Generic[Rendered]):
    def __init__(
        self,
        board: Board[Rendered],
        directory: MemoryDirectory,
        clock: FollowingClock,
        faults: Callable[[list[Fault]], None] = lambda _: None,
        fresh: Callable[[int], None] = lambda _: None,
        *,
        watched: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`faults` hears of each list of faults, and `fresh` how new all that is shown is.

        `watched` hears whether anyone watches the requests of VMs.
        """
        self._watched = watched
        self._faults = faults
        self._fresh = fresh
        self._board = board
        self._directory = directory
        self._clock = clock
        self._sequence: int | None = None
        self._coming: MemoryDirectory | None = None

    @property
    def is_whole(self) -> bool:
        """Whether this connection's snapshot is complete."""
        return self._sequence is not None and self._coming is None

    def begin(self, hello: Hello) -> None:
        """Raises FeedBrokenError."""
        if hello.protocol != PROTOCOL:
            raise FeedBrokenError(
                f"the writer (Forewarned {hello.version}) uses feed protocol {hello.protocol}, and"
                f" this poller uses {PROTOCOL}: restart the whole server"
            )
        self._sequence = hello.sequence
        self._coming = MemoryDirectory()

    def lose(self) -> None:
        """The connection is gone. What has been shown stays."""
        self._sequence = self._coming = None

    def take(self, message: State) -> None:
        """Raises FeedBrokenError."""
        match message:
            case ClockSet():
                self._clock.follow(message.instant, message.speed)
            case FaultsSet():
                self._faults(message.faults)
            case Watched():
                self._watched(message.is_watched)
            case Pages():
                self._expect_snapshot()
                self._show(message.pages)
            case Places():
                self._expect_snapshot().settle(message.places)
            case FirstVm():
                self._expect_snapshot().put_first(message.name)
            case Committed():
                self._follow(message)
            case Fresh():
                # In the middle of a snapshot nothing is known to be new.
                if self.is_whole:
                    self._fresh(message.began)
            case SnapshotEnd():
                self._directory.take_over(self._expect_snapshot())
                self._coming = None
            case _:
                assert_never(message)

    def _follow(self, commit: Committed) -> None:
        if self._sequence is None or commit.sequence != self._sequence + 1:
            raise FeedBrokenError(
                f"a commit is missing: {commit.sequence} came right after {self._sequence}"
            )
        self._sequence = commit.sequence
        self._show(commit.pages)
        if commit.bound or commit.unbound:
            directory = self._coming or self._directory
            directory.put_first(commit.first_vm)
            directory.move(commit.bound, gone=commit.unbound)

    def _show(self, pages: list[PageContent]) -> None:
        for page in pages:
            self._board.show(page)

    def _expect_snapshot(self) -> MemoryDirectory:
        if self._coming is None:
            raise FeedBrokenError("part of a snapshot arrived before its beginning")
        return self._coming
