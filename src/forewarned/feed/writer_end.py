"""The writer's end of the feed: every poller hears of every commit, in order."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from forewarned.core.ids import ResourceName
from forewarned.feed.frames import FeedBrokenError, frame, in_parts
from forewarned.feed.poller_link import PollerLink
from forewarned.feed.protocol import ClockSet, Committed, FaultsSet, Fresh, encode
from forewarned.service.faults import Fault, FaultSource
from forewarned.service.records import Commit, News, PageContent, Place, ScopePlaces

_log = logging.getLogger(__name__)

PART: Final = 4096
"""What a message may weigh: VMs named in it, more or less."""
PATIENCE: Final = timedelta(seconds=1)
"""How long a caller waits at most for pollers to be in step."""


class PacedClock(Protocol):
    def pace(self) -> tuple[datetime, float]:
        """Where it stands, and how fast it goes on from there."""

    def watch(self, watcher: Callable[[], None]) -> None: ...


class Link(Protocol):
    def publish(self, framed: bytes) -> None: ...
    def drop(self, why: str) -> None: ...


class CommitLink(Link, Protocol):
    """To the poller of a hypervisor, which is told a part of each commit only."""

    def hear(self, commit: Commit) -> None: ...


class WriterEnd:
    def __init__(self, clock: PacedClock, faults: FaultSource) -> None:
        self._clock = clock
        self._faults = faults
        self._links: set[PollerLink] = set()
        self._hosts: set[CommitLink] = set()
        self._syncs = 0
        self._sync: asyncio.Task[None] | None = None
        """The last for which pollers were asked."""
        self._next_sync: asyncio.Task[None] | None = None
        """The one that new callers wait for; None while none does."""
        self.sequence = 0
        """Of the last commit told."""
        self._counters: Counter[str] = Counter()
        clock.watch(self._tell_time)
        faults.watch(self._tell_faults)

    @property
    def links(self) -> int:
        return len(self._links)

    def join(self, link: PollerLink) -> None:
        self._links.add(link)

    def leave(self, link: PollerLink) -> None:
        self._links.discard(link)

    def join_host(self, link: CommitLink) -> None:
        """Nothing waits for it to be in step: a slow hypervisor must not delay operators."""
        self._hosts.add(link)

    def leave_host(self, link: CommitLink) -> None:
        self._hosts.discard(link)

    def count(self, increments: Mapping[str, int]) -> None:
        self._counters.update(increments)

    def take_counts(self) -> dict[str, int]:
        """What pollers have counted since this was last called, all together."""
        taken, self._counters = dict(self._counters), Counter()
        return taken

    def hear(self, commit: Commit) -> None:
        for message in committed(commit, after=self.sequence):
            self.sequence = message.sequence
            self._publish(message)
        for host in tuple(self._hosts):
            host.hear(commit)

    def hear_news(self, news: News) -> None:
        """What any node has committed. After this, pollers are as new as the store was then."""
        for message in told(news, after=self.sequence):
            self.sequence = message.sequence
            self._publish(message)
        self._publish(Fresh(news.began))

    def restart(self, why: str) -> None:
        """Let every poller take a new snapshot."""
        every: list[Link] = [*self._links, *self._hosts]
        for link in every:
            link.drop(why)

    def time(self) -> ClockSet:
        return ClockSet(*self._clock.pace())

    def faults(self) -> FaultsSet:
        return FaultsSet(list(self._faults.active))

    async def sync(self) -> None:
        """Return once every poller is in step, and what they have marked and counted is here.

        A poller that takes too long is not waited for again until it has answered. Pollers are
        asked once for all callers that come while they are asked for others: windows of the console
        fetch their pages by the dozen.
        """
        if not self._links:
            return
        if self._next_sync is None:
            self._next_sync = asyncio.create_task(self._sync_after(self._sync))
        # A caller that leaves must not take it from the others.
        await asyncio.shield(self._next_sync)

    async def _sync_after(self, current: asyncio.Task[None] | None) -> None:
        if current is not None:
            await asyncio.wait([current])
        # From here on callers come too late for this one.
        self._sync, self._next_sync = self._next_sync, None
        await self._ask_pollers()

    async def _ask_pollers(self) -> None:
        self._syncs += 1
        asked = {
            link.sync(self._syncs): link
            for link in tuple(self._links)
            if link.is_in_step and not link.is_lagging
        }
        if not asked:
            return
        _, late = await asyncio.wait(asked, timeout=PATIENCE.total_seconds())
        for one in late:
            asked[one].is_lagging = True

    def _tell_time(self) -> None:
        if self._links or self._hosts:
            self._publish(self.time(), *self._hosts)

    def _tell_faults(self, _: tuple[Fault, ...]) -> None:
        self._publish(self.faults(), *self._hosts)

    def _publish(self, message: Committed | ClockSet | FaultsSet | Fresh, *hosts: Link) -> None:
        if not self._links and not hosts:
            return
        try:
            framed = frame(encode(message))
        except FeedBrokenError:
            # What is committed must not fail for want of telling: a snapshot says it all again.
            _log.exception("a commit can't be sent to the pollers")
            for link in tuple(self._links):
                link.drop("it missed a commit")
            return
        told: list[Link] = [*self._links, *hosts]
        for each in told:
            each.publish(framed)


def committed(commit: Commit, *, after: int) -> Iterator[Committed]:
    """A commit as messages. A VM reads one scope, so no VM sees half of it between the parts.

    Pages come first, so a bound VM finds a document. A commit that shows nothing yields nothing.
    """
    places = [Place.of(binding) for binding in commit.bound] if commit.bound else ()
    return _parts(commit.shown, commit.unbound, places, commit.first_vm, after=after)


def told(news: News, *, after: int) -> Iterator[Committed]:
    """News as messages, as `committed`. Only an emulator needs to know the first VM."""
    return _parts(news.pages, news.unbound, news.bound, None, after=after)


def _parts(
    pages: Sequence[PageContent],
    unbound: Collection[ResourceName],
    bound: Sequence[Place],
    first_vm: ResourceName | None,
    *,
    after: int,
) -> Iterator[Committed]:
    # Most commits show one page, which is one message whatever it weighs.
    for some in [list(pages)] if len(pages) == 1 else page_parts(iter(pages)):
        after += 1
        yield Committed(after, pages=some)
    if unbound:
        after += 1
        yield Committed(after, unbound=list(unbound), first_vm=first_vm)
    for places in place_parts(iter(bound)):
        after += 1
        yield Committed(after, bound=places, first_vm=first_vm)


def page_parts(pages: Iterator[PageContent]) -> Iterator[list[PageContent]]:
    return in_parts(pages, weight=_weight, most=PART)


def place_parts(places: Iterator[Place]) -> Iterator[list[Place]]:
    return in_parts(places, weight=lambda _: 1, most=PART)


def scope_parts(scopes: Iterator[ScopePlaces]) -> Iterator[list[ScopePlaces]]:
    return in_parts(scopes, weight=lambda scope: len(scope.names), most=PART)


def _weight(page: PageContent) -> int:
    return 1 + sum(8 + len(event.resources) for event in page.document.events)
