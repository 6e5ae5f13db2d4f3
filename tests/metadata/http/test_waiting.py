"""The long poll: a read that waits for a change. It is ours, not Azure's."""

import asyncio
import resource
from collections.abc import Iterator

import pytest

from forewarned.core.ids import ScopeId
from forewarned.metadata.http.waiting import Wait, Waiting
from forewarned.metadata.options import Options
from tests.builders import a_scope, an_event
from tests.effort import amount
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

MANY = amount(2_000, 10_000)


def waiting(wait: str = "60s", last: int | str | None = 1) -> str:
    suffix = "" if last is None else f"&last-incarnation={last}"
    return f"{EVENTS}&wait={wait}{suffix}"


@pytest.mark.parametrize("headers", [{}, {"If_None_Match": '"1"'}])
async def test_every_document_says_that_reads_may_wait(
    client: Client, headers: dict[str, str]
) -> None:
    answer = await client.get(**headers)

    assert answer.headers["Forewarned-Wait"] == "5m"


async def test_a_document_that_differs_already_is_answered_at_once(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event(), incarnation=2)

    answer = await client.get(waiting(last=1))

    assert answer.headers["ETag"] == '"2"'


async def test_a_change_ends_the_wait_with_the_new_document(
    service: FakeService, client: Client
) -> None:
    await client.send(get(waiting(last=1)))
    await turns()
    service.publish(an_event(), incarnation=2)

    answer = await client.receive()

    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')


async def test_without_an_incarnation_any_change_from_now_on_ends_the_wait(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event(), incarnation=2)
    await client.send(get(waiting(last=None)))
    await turns()
    service.publish(incarnation=3)

    assert (await client.receive()).headers["ETag"] == '"3"'


async def test_a_wait_that_is_over_is_answered_with_the_unchanged_document(
    service: FakeService, site: Site, client: Client
) -> None:
    await client.send(get(waiting("60s", last=1)))
    await turns()
    service.stopwatch.seconds += 59
    site.server.sweep()
    await turns()
    service.stopwatch.seconds += 2
    site.server.sweep()

    answer = await client.receive()

    assert (answer.status, answer.body) == (200, b'{"DocumentIncarnation":1,"Events":[]}')


async def test_waits_known_by_sight_and_with_more_behind_them_are_over_in_time_too(
    service: FakeService, site: Site, client: Client
) -> None:
    await client.send(get(waiting("0s", last=1)) + get(waiting("5m", last=1)))
    await turns()
    site.server.sweep()
    await client.receive()
    known = await site.connect()
    await known.send(get(waiting("5m", last=1)))
    behind = await site.connect()
    await behind.send(get(waiting("5m", last=1)))
    await turns()
    await behind.send(get())
    await turns()
    service.stopwatch.seconds += 299
    site.server.sweep()
    await turns()
    still_waiting = len(site.server.context.waiting)
    service.stopwatch.seconds += 2
    site.server.sweep()

    answers = [await each.receive() for each in (client, known, behind, behind)]

    assert still_waiting == 3
    assert [answer.status for answer in answers] == [200] * 4


async def test_a_wait_is_capped(service: FakeService, site: Site, client: Client) -> None:
    await client.send(get(waiting("7d", last=1)))
    await turns()
    service.stopwatch.seconds += 302
    site.server.sweep()

    assert (await client.receive()).status == 200


@pytest.mark.parametrize(
    "query",
    [
        "&wait=",
        "&wait=soon",
        "&wait=-5s",
        "&wait=60",
        "&wait=60s&last-incarnation=",
        "&wait=60s&last-incarnation=x",
        "&wait=60s&last-incarnation=-1",
        "&wait=60s&last-incarnation=12345678901",
        "&last-incarnation=1",
        "&wait=1s&wait=2s",
    ],
)
async def test_a_wait_that_makes_no_sense_is_refused(client: Client, query: str) -> None:
    answer = await client.get(EVENTS + query)

    assert answer.status == 400


async def test_a_wait_of_nothing_is_an_ordinary_poll(
    service: FakeService, site: Site, client: Client
) -> None:
    await client.send(get(waiting("0s", last=1)))
    await turns()
    service.stopwatch.seconds += 1
    site.server.sweep()

    assert (await client.receive()).status == 200


async def test_a_change_of_another_scope_ends_no_wait(service: FakeService, site: Site) -> None:
    """I9: not even by its timing does a VM learn of another scope's events."""
    service.add("vm2", "127.0.0.2", "scope2")
    client = await site.connect()
    await client.send(get(waiting(last=1)))
    await turns()

    service.publish(an_event(), incarnation=2, scope="scope2")
    await turns()
    service.publish(an_event(), incarnation=5)

    assert (await client.receive()).headers["ETag"] == '"5"'


async def test_what_is_sent_during_a_wait_is_answered_after_it(
    service: FakeService, client: Client
) -> None:
    await client.send(get(waiting(last=1)) + get())
    await turns()
    await client.send(get(If_None_Match='"2"'))
    await turns()
    service.publish(an_event(), incarnation=2)

    waited, second, third = [await client.receive() for _ in range(3)]

    assert (waited.status, second.status, third.status) == (200, 200, 304)


async def test_a_first_read_that_waits_activates_and_then_waits(
    service: FakeService, client: Client
) -> None:
    """I28."""
    service.show(a_scope(id="scope1", active=False))
    await client.send(get(waiting(last=1)))
    await until(lambda: bool(service.reader.activated))
    await turns()
    service.publish(an_event(), incarnation=2)

    assert (await client.receive()).headers["ETag"] == '"2"'


async def test_a_vm_that_goes_away_is_not_waited_for(service: FakeService, site: Site) -> None:
    client = await site.connect()
    await client.send(get(waiting(last=1)))
    await turns()
    client.writer.transport.abort()
    await until(lambda: site.server.connections == 0)

    service.publish(an_event(), incarnation=2)
    await turns()

    assert (await site.get()).headers["ETag"] == '"2"'


async def test_an_approval_by_another_vm_is_not_kept_by_a_wait(
    service: FakeService, site: Site
) -> None:
    service.publish(an_event(), incarnation=2)
    waiter, other = await site.connect(), await site.connect()
    await waiter.send(get(waiting(last=2)))
    [event_id] = service.approver.known

    answer = await other.request(post(f'{{"StartRequests":[{{"EventId":"{event_id}"}}]}}'))

    assert answer.status == 200


async def test_stopping_answers_those_who_wait(service: FakeService) -> None:
    async with service.serving() as site:
        client = await site.connect()
        await client.send(get(waiting(last=1)))
        await turns()
        await site.server.stop()

        assert (await client.receive()).status == 200


@pytest.fixture
def many() -> Iterator[int]:
    """Thousands, or as many as this machine's limit on open files allows: two a connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MANY + 500
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, PermissionError):
        wanted = hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield (wanted - 500) // 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_thousands_who_wait_are_each_answered_once(service: FakeService, many: int) -> None:
    """None is lost when others go away at the very moment of the change."""
    for number in range(100):
        service.directory.bind(f"vm{number}", f"127.0.1.{number + 1}", "scope1")
    options = Options(rate_limit=None, max_connections=2 * many, max_connections_per_vm=many)
    async with service.serving(options) as site:
        clients = [await site.connect(f"127.0.1.{n % 100 + 1}") for n in range(many)]
        for client in clients:
            client.writer.write(get(waiting(last=1)))
        await until(lambda: len(site.server.context.waiting) == many)
        service.publish(an_event(), incarnation=2)
        for client in clients[::100]:
            client.writer.transport.abort()

        stayed = [client for number, client in enumerate(clients) if number % 100]
        answers = await asyncio.gather(*(client.receive() for client in stayed))
        await turns()
        again = [client.reader._buffer for client in stayed]  # type: ignore[attr-defined]

    assert {answer.headers["ETag"] for answer in answers} == {'"2"'}
    assert not any(again)


async def test_a_defect_in_one_answer_leaves_nobody_else_waiting(
    service: FakeService, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [await site.connect() for _ in range(3)]
    for client in clients:
        await client.send(get(waiting(last=1)))
    await until(lambda: len(site.server.context.waiting) == 3)

    def broken(_: object) -> None:
        monkeypatch.undo()
        raise LookupError("a defect")

    monkeypatch.setattr(service.board, "page", broken)
    service.publish(an_event(), incarnation=2)
    async with asyncio.timeout(60):
        statuses = sorted([(await client.receive()).status for client in clients])
        await clients[0].send(get(waiting(last=2)))
        await until(lambda: len(site.server.context.waiting) == 1)
        service.publish(an_event(), incarnation=3)
        last = await clients[0].receive()

    assert statuses == [200, 200, 500]
    assert last.headers["ETag"] == '"3"'


async def test_a_waiter_that_fails_leaves_nobody_else_waiting() -> None:
    loop = asyncio.get_running_loop()
    failures: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, failure: failures.append(failure))
    group: Waiting[Failing] = Waiting(loop)
    waiters = [Failing(fails=number == 0) for number in range(3)]
    for waiter in waiters:
        group.add(waiter, Wait(ScopeId("scope1"), 0.0))

    group.changed(ScopeId("scope1"))
    await turns()

    assert [waiter.is_released for waiter in waiters] == [True, True, True]
    assert len(failures) == 1
    assert len(group) == 0


class Failing:
    def __init__(self, *, fails: bool) -> None:
        self.wait: Wait | None = None
        self.is_released = False
        self._fails = fails

    def release(self, _: Wait) -> None:
        self.is_released = True
        if self._fails:
            raise LookupError("a defect")
