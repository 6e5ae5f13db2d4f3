"""I7, I24 at a node among several: who is answered at once, who waits for news, who gets 503."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from forewarned.metadata.http.barrier import REMEMBERED, STALE_AFTER_NS, Barrier
from forewarned.metadata.options import Balancing, Options
from tests.builders import A, a_scope, an_event
from tests.metadata.fakes import (
    EVENTS,
    Client,
    FakeService,
    Site,
    get,
    post,
    turns,
    until,
)

APPROVAL = f'{{"StartRequests": [{{"EventId": "{A}"}}]}}'
CLOSING = get(EVENTS, Connection="close")


class Node:
    """A node whose looks at the store the test takes itself."""

    def __init__(self, balancing: Balancing = Balancing.STICKY) -> None:
        self.nanoseconds = 1_000_000_000_000
        self.barrier = Barrier(balancing, now=lambda: self.nanoseconds)
        self.service = FakeService()

    def serving(self, options: Options | None = None) -> AbstractAsyncContextManager[Site]:
        return self.service.serving(options, barrier=self.barrier)

    def pass_time(self, nanoseconds: int = 1) -> None:
        self.nanoseconds += nanoseconds
        self.barrier.review()

    def look(self) -> None:
        """A whole look, from now to now."""
        self.pass_time()
        self.barrier.fresh(self.nanoseconds)
        self.pass_time()

    def go_stale(self) -> None:
        self.pass_time(STALE_AFTER_NS)

    def keep_looking(self, nanoseconds: int) -> None:
        for _ in range(2 * nanoseconds // STALE_AFTER_NS + 1):
            self.pass_time(STALE_AFTER_NS // 2)
            self.look()


@pytest.fixture(params=["kept", "closing"])
def poll(request: pytest.FixtureRequest) -> bytes:
    """The same poll on a connection that stays open, and on one for it alone."""
    return get() if request.param == "kept" else CLOSING


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def at(anyio_backend: object, node: Node) -> AsyncIterator[Site]:
    async with node.serving() as site:
        # Both polls are known by their bytes from here on, as they nearly always are.
        for raw in (get(), CLOSING):
            await asked(site, raw)
            node.look()
        await turns()
        node.keep_looking(REMEMBERED)
        yield site


async def asked(site: Site, raw: bytes = CLOSING, *, address: str = "127.0.0.1") -> Client:
    """A client that has asked, and whose request has been read."""
    before = len(site.server.context.waiting)
    client = await site.connect(address)
    await client.send(raw)
    async with asyncio.timeout(10):
        await until(lambda: len(site.server.context.waiting) > before or client.has_answer)
    return client


async def regular(node: Node, at: Site, raw: bytes = CLOSING) -> Client:
    """A client whose VM has just been served here."""
    client = await asked(at, raw)
    node.look()
    assert (await client.receive()).status == 200
    return client


async def test_the_first_poll_of_a_vm_waits_for_a_look_that_began_after_it(
    node: Node, at: Site, poll: bytes
) -> None:
    """I7: a look that began before the poll may have missed what the VM read elsewhere."""
    began_before = node.nanoseconds
    node.pass_time()
    client = await asked(at, poll)
    node.pass_time()
    node.barrier.fresh(began_before)
    await turns()
    waiting = len(at.server.context.waiting)
    node.service.publish(an_event(A), incarnation=2)
    node.look()

    answer = await client.receive()

    assert waiting == 1
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')


async def test_a_look_that_began_in_the_same_nanosecond_is_none_that_began_after(
    node: Node, at: Site, poll: bytes
) -> None:
    await asked(at, poll)
    node.barrier.fresh(node.nanoseconds)
    await turns()

    assert len(at.server.context.waiting) == 1


async def test_a_vm_that_was_just_served_is_answered_at_once(
    node: Node, at: Site, poll: bytes
) -> None:
    await regular(node, at)

    answer = await at.request(poll)

    assert answer.status == 200


async def test_a_vm_that_polls_all_the_time_waits_only_once(
    node: Node, at: Site, poll: bytes
) -> None:
    await regular(node, at)

    for _ in range(6):
        node.keep_looking(REMEMBERED // 4)
        assert (await at.request(poll)).status == 200


async def test_a_vm_that_has_not_been_served_for_a_while_waits_again(
    node: Node, at: Site, poll: bytes
) -> None:
    kept = await regular(node, at, get())
    node.keep_looking(REMEMBERED)

    await asked(at, poll)
    await kept.send(get())
    async with asyncio.timeout(10):
        await until(lambda: len(at.server.context.waiting) == 2)


async def test_a_vm_at_the_address_of_another_is_not_taken_for_it(
    node: Node, at: Site, poll: bytes
) -> None:
    await regular(node, at)
    node.service.add("vm2", "127.0.0.1", "scope2")

    client = await asked(at, poll)
    node.look()

    assert (await client.receive()).status == 200


async def test_with_any_balancing_every_new_connection_waits_and_open_ones_do_not() -> None:
    node = Node(Balancing.ANY)
    async with node.serving() as site:
        kept = await regular(node, site, get())

        again = await asked(site, CLOSING)
        answer = await kept.get()

        assert answer.status == 200
        assert not again.has_answer
        assert len(site.server.context.waiting) == 1


async def test_first_polls_are_answered_in_the_order_they_came(node: Node, at: Site) -> None:
    node.service.add("vm2", "127.0.0.2", "scope2")
    early = await asked(at, address="127.0.0.1")
    node.pass_time()
    began = node.nanoseconds
    late = await asked(at, address="127.0.0.2")
    node.pass_time()

    node.barrier.fresh(began)
    answer = await early.receive()

    assert answer.status == 200
    assert not late.has_answer


async def test_requests_behind_a_first_poll_are_answered_after_it(node: Node, at: Site) -> None:
    node.service.publish(an_event(A), incarnation=2)
    client = await asked(at, get() + post(APPROVAL) + get())
    await turns()
    is_approved = bool(node.service.approver.approved)
    node.look()

    answers = [await client.receive() for _ in range(3)]

    assert not is_approved
    assert [(answer.status, b"DocumentIncarnation" in answer.body) for answer in answers] == [
        (200, True),
        (200, False),
        (200, True),
    ]


async def test_a_first_long_poll_waits_for_news_and_then_for_a_change(node: Node, at: Site) -> None:
    client = await asked(at, get(f"{EVENTS}&wait=60s&last-incarnation=1"))
    node.look()
    await turns()
    waits_on = len(at.server.context.waiting)
    node.service.publish(an_event(A), incarnation=2)

    answer = await client.receive()

    assert waits_on == 1
    assert answer.headers["ETag"] == '"2"'


async def test_a_first_long_poll_whose_vm_knows_more_than_the_node_gets_no_older_document(
    node: Node, at: Site
) -> None:
    """I7: without the wait a node at incarnation 1 would take 7 for news, and answer with 1."""
    client = await asked(at, get(f"{EVENTS}&wait=60s&last-incarnation=7"))
    node.service.publish(an_event(A), incarnation=7)
    node.look()
    await turns()

    assert not client.has_answer
    assert len(at.server.context.waiting) == 1


async def test_the_first_poll_of_a_scope_activates_it_after_the_wait(
    node: Node, at: Site, poll: bytes
) -> None:
    node.service.show(a_scope(id="scope1", active=False))
    client = await asked(at, poll)
    before = list(node.service.reader.activated)
    node.look()

    answer = await client.receive()

    assert before == []
    assert answer.status == 200
    assert len(node.service.reader.activated) == 1


async def test_an_unknown_address_is_refused_once_the_node_is_sure(node: Node, at: Site) -> None:
    stranger = await asked(at, address="127.0.0.9")
    bound = await asked(at, address="127.0.0.8")
    node.service.add("vm8", "127.0.0.8", "scope8")
    node.look()

    assert (await stranger.receive()).status == 403
    assert (await bound.receive()).status == 200


async def test_a_vm_over_its_rate_is_told_at_once(node: Node) -> None:
    """I27: a poll that waits counts as one, and no VM can wait more often than it may ask."""
    async with node.serving(Options(rate_limit=1.0)) as site:
        await asked(site)

        assert (await site.request(CLOSING)).status == 429
        assert len(site.server.context.waiting) == 1


async def test_first_polls_count_against_the_connections_of_their_vm(node: Node) -> None:
    async with node.serving(Options(rate_limit=None, max_connections_per_vm=2)) as site:
        await asked(site)
        await asked(site)

        assert (await site.request(CLOSING)).status == 429


async def test_a_client_that_goes_away_is_not_waited_for(node: Node, at: Site) -> None:
    client = await asked(at, get())

    open_before = at.server.connections
    client.writer.transport.abort()
    async with asyncio.timeout(10):
        await until(lambda: at.server.connections < open_before)

    assert len(at.server.context.waiting) == 0


async def test_instance_documents_and_tokens_never_wait(node: Node, at: Site) -> None:
    """They have no number that could fall, and the store itself answers."""
    instance = await at.get("/metadata/instance?api-version=2021-02-01")
    token = await at.get(
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://example.com/"
    )

    assert (instance.status, token.status) == (200, 200)


# --- stale ---------------------------------------------------------------------------------------


async def test_a_stale_node_turns_newcomers_away(node: Node, at: Site, poll: bytes) -> None:
    """I24: at once, because there is nothing to wait for."""
    node.go_stale()

    client = await asked(at, poll)
    waits = len(at.server.context.waiting)
    answer = await client.receive()

    assert waits == 0
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_a_stale_node_gives_last_documents_to_vms_it_serves(
    node: Node, at: Site, poll: bytes
) -> None:
    """I24, for as long as it lasts."""
    node.service.publish(an_event(A), incarnation=2)
    await regular(node, at)
    node.go_stale()

    for _ in range(10):
        node.pass_time(REMEMBERED // 3)
        answer = await at.request(poll)
        assert (answer.status, answer.headers["ETag"]) == (200, '"2"')


async def test_a_stale_node_gives_last_documents_on_connections_it_kept(
    node: Node, at: Site
) -> None:
    kept = await regular(node, at, get())
    node.go_stale()
    node.pass_time(10 * REMEMBERED)
    node.pass_time(10 * REMEMBERED)

    assert (await kept.get()).status == 200


async def test_a_stale_node_forgets_whom_it_served_long_ago(node: Node, at: Site) -> None:
    """I7: such a VM has read elsewhere since."""
    await regular(node, at)
    node.go_stale()
    node.pass_time(REMEMBERED)
    node.pass_time(REMEMBERED)

    assert (await at.request(CLOSING)).status == 503


async def test_first_polls_that_wait_when_a_node_goes_stale_are_turned_away(
    node: Node, at: Site, poll: bytes
) -> None:
    client = await asked(at, poll)
    node.go_stale()

    answer = await client.receive()

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_a_stale_node_refuses_approvals_without_asking_the_store(
    node: Node, at: Site
) -> None:
    """I14, I24."""
    node.service.publish(an_event(A), incarnation=2)
    await regular(node, at)
    node.go_stale()

    answer = await (await at.connect()).post(APPROVAL)

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert node.service.approver.approved == []


async def test_a_node_that_hears_from_the_store_again_serves_all(
    node: Node, at: Site, poll: bytes
) -> None:
    node.service.publish(an_event(A), incarnation=2)
    node.go_stale()
    await at.request(poll)
    node.look()
    client = await asked(at, poll)
    node.look()

    assert (await client.receive()).status == 200
    assert (await (await at.connect()).post(APPROVAL)).status == 200


async def test_long_polls_that_end_on_a_stale_node_keep_their_vms_served(
    node: Node, at: Site
) -> None:
    long_poll = get(f"{EVENTS}&wait=60s&last-incarnation=1", Connection="close")
    client = await asked(at, long_poll)
    node.look()
    await turns()
    node.keep_looking(REMEMBERED)
    node.go_stale()
    node.service.stopwatch.seconds += 61
    at.server.sweep()

    first = await client.receive()
    then = await at.request(CLOSING)

    assert (first.status, then.status) == (200, 200)


async def test_news_that_come_but_are_old_do_not_hold_a_poll_for_ever(node: Node, at: Site) -> None:
    began = node.nanoseconds
    client = await asked(at)
    for _ in range(10):
        node.pass_time(STALE_AFTER_NS // 2)
        node.barrier.fresh(began)
    node.service.stopwatch.seconds += 6
    at.server.sweep()

    assert (await client.receive()).status == 503


async def test_a_server_that_stops_answers_first_polls_with_503(node: Node) -> None:
    async with node.serving() as site:
        client = await asked(site, get())
        await site.server.stop()

        answer = await client.receive()

        assert (answer.status, await client.rest()) == (503, b"")


async def test_a_process_that_stood_still_for_long_takes_nobody_for_just_served(
    node: Node, at: Site, poll: bytes
) -> None:
    """I7, F2: meanwhile its VMs have read elsewhere. What has arrived is read before timers run."""
    await regular(node, at)
    node.nanoseconds += REMEMBERED
    node.service.stopwatch.seconds += 30

    answer = await at.request(poll)

    assert answer.status == 503
