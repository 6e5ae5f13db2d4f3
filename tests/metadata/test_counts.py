"""What the listener counts."""

from forewarned.metadata.counts import Counts
from tests.builders import SECOND, an_event
from tests.metadata.fakes import EVENTS, FakeService, Site, get, post, turns


async def test_polls_are_counted_however_they_were_answered(
    service: FakeService, site: Site
) -> None:
    client = await site.connect()
    for _ in range(5):
        await client.get()
    await service.clock.step(SECOND)
    for _ in range(4):
        await client.get(If_None_Match='"1"')

    assert site.server.counts.take() == {"documents": 5, "unmodified": 4}
    assert site.server.counts.take() == {}


async def test_waits_approvals_and_refusals_are_counted(service: FakeService, site: Site) -> None:
    service.publish(an_event(), incarnation=2)
    [event_id] = service.approver.known
    client = await site.connect()
    await client.request(post(f'{{"StartRequests":[{{"EventId":"{event_id}"}}]}}'))
    await client.post("{")
    await client.get(Metadata="")
    await client.get("/elsewhere")
    await client.send(get(f"{EVENTS}&wait=60s&last-incarnation=2"))
    await turns()
    service.publish(incarnation=3)
    await client.receive()

    assert site.server.counts.take() == {
        "documents": 1,
        "waits": 1,
        "approvals": 1,
        "refused_bad_body": 1,
        "refused_no_metadata_header": 1,
        "refused_unknown_path": 1,
    }


def test_nothing_counted_is_nothing_taken() -> None:
    assert Counts().take() == {}
