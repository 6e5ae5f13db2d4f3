"""Requests, as those are told of them who watch an emulator."""

import asyncio

from forewarned.service.requests.watch import RequestWatch, SeenRequest
from tests.builders import A, an_event
from tests.metadata.fakes import EVENTS, FakeService, get, post, turns

APPROVAL = f'{{"StartRequests": [{{"EventId": "{A}"}}]}}'
WAITING = f"{EVENTS}&wait=60s&last-incarnation=2"


async def test_what_came_before_anybody_watched_is_not_told_when_it_is_answered(
    service: FakeService,
) -> None:
    watch, heard = RequestWatch(), list[SeenRequest]()
    service.publish(an_event(A))
    gate = service.approver.gate = asyncio.Event()
    async with service.serving(requests=watch) as site:
        approving, polling = await site.connect(), await site.connect()
        await approving.send(post(APPROVAL))
        await polling.send(get(WAITING))
        await turns()

        with watch.heard_by(heard.append):
            gate.set()
            service.publish(an_event(A), incarnation=3)
            assert [(await each.receive()).status for each in (approving, polling)] == [200, 200]
            assert heard == []

            await polling.get()
            await polling.send(b"no HTTP at all\r\n\r\n")
            assert (await polling.receive()).status == 400

    assert [(each.asks, each.target, each.status) for each in heard] == [
        ("events", EVENTS, 200),
        ("refused", "", 400),
    ]
    assert ("metadata", "true") in heard[0].headers
