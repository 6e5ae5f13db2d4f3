"""The document, per api-version and through an event's life: what Azure shows, byte for byte."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.core.model import Document, Event, EventSource, EventStatus, EventType
from forewarned.metadata.http.responses import DateLine
from forewarned.metadata.wire import encode
from forewarned.service.events.api_versions import EVENT_VERSIONS
from tests.builders import NOON, SECOND, A, B, an_event
from tests.metadata.fakes import DATE, Client, FakeClock, FakeService, Site, get

ID = "0000000A-0000-4000-8000-000000000000"
WHEN = "Mon, 05 Jan 2026 12:00:00 GMT"
FREEZE = an_event(
    type=EventType.FREEZE,
    resources=["vm1", "vm2"],
    description="Host server is undergoing maintenance.",
    duration=timedelta(seconds=9),
)
FIRST_FIELDS = (
    f'"EventId":"{ID}","EventStatus":"Scheduled","EventType":"Freeze",'
    '"ResourceType":"VirtualMachine","Resources":["vm1","vm2"],'
    f'"NotBefore":"{WHEN}"'
)
DESCRIPTION = ',"Description":"Host server is undergoing maintenance."'
SOURCE = ',"EventSource":"Platform"'
DURATION = ',"DurationInSeconds":9'


def text(*events: Event, version: str = "2020-07-01", incarnation: int = 2) -> str:
    document = Document(incarnation=incarnation, events=events)
    return encode(document, EVENT_VERSIONS[version]).decode()


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("2017-03-01", FIRST_FIELDS.replace('"vm1","vm2"', '"_vm1","_vm2"')),
        ("2017-08-01", FIRST_FIELDS),
        ("2017-11-01", FIRST_FIELDS),
        ("2019-01-01", FIRST_FIELDS),
        ("2019-04-01", FIRST_FIELDS + DESCRIPTION),
        ("2019-08-01", FIRST_FIELDS + DESCRIPTION + SOURCE),
        ("2020-07-01", FIRST_FIELDS + DESCRIPTION + SOURCE + DURATION),
    ],
)
async def test_each_version_has_its_fields_in_order_and_no_others(
    service: FakeService, client: Client, version: str, fields: str
) -> None:
    service.publish(FREEZE)

    answer = await client.get(f"/metadata/scheduledevents?api-version={version}")

    assert answer.status == 200
    assert answer.body.decode() == f'{{"DocumentIncarnation":2,"Events":[{{{fields}}}]}}'


@pytest.mark.parametrize(
    ("version", "unseen"),
    [
        ("2017-03-01", {EventType.PREEMPT, EventType.TERMINATE}),
        ("2017-08-01", {EventType.PREEMPT, EventType.TERMINATE}),
        ("2017-11-01", {EventType.TERMINATE}),
        ("2019-01-01", set()),
        ("2019-04-01", set()),
        ("2019-08-01", set()),
        ("2020-07-01", set()),
    ],
)
@pytest.mark.parametrize("type", list(EventType))
def test_types_newer_than_the_version_are_left_out(
    version: str, unseen: set[EventType], type: EventType
) -> None:
    shown = text(an_event(type=type), version=version)

    if type in unseen:
        assert shown == '{"DocumentIncarnation":2,"Events":[]}'
    else:
        assert f'"EventType":"{type.value}"' in shown


def test_the_versions_are_those_of_azure() -> None:
    assert list(EVENT_VERSIONS) == [
        "2017-03-01",
        "2017-08-01",
        "2017-11-01",
        "2019-01-01",
        "2019-04-01",
        "2019-08-01",
        "2020-07-01",
    ]


def test_instances_of_a_cloud_service_never_had_the_underscore() -> None:
    shown = text(an_event(resources=["FrontEnd_IN_0", "web_3"]), version="2017-03-01")

    assert '"Resources":["FrontEnd_IN_0","_web_3"]' in shown


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (None, -1),
        (timedelta(0), 0),
        (timedelta(milliseconds=1), 1),
        (timedelta(minutes=1), 60),
    ],
)
def test_a_duration_is_in_whole_seconds_and_minus_one_where_unknown(
    duration: timedelta | None, seconds: int
) -> None:
    assert text(an_event(duration=duration)).endswith(f'"DurationInSeconds":{seconds}}}]}}')


def test_a_description_is_any_text() -> None:
    assert '"Description":"\\"größer\\" \\\\ 事"' in text(an_event(description='"größer" \\ 事'))


def test_events_keep_their_order() -> None:
    shown = text(an_event(B), an_event(A))

    assert shown.index(B) < shown.index(A)


def answer_with(body: str, incarnation: int) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\n"
        b"Server: IMDS/forewarned\r\n"
        b"Date: " + DATE + b"\r\n"
        b"Content-Type: application/json; charset=utf-8\r\n"
        b'ETag: "%d"\r\n' % incarnation + b"Forewarned-Wait: 5m\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    ) + body.encode()


async def test_the_life_of_an_event_is_four_documents(service: FakeService, client: Client) -> None:
    scheduled = an_event(
        source=EventSource.USER,
        description="Virtual machine is going to be restarted as requested by authorized user.",
    )
    started = replace(scheduled, status=EventStatus.STARTED, not_before=None)
    fields = (
        '"EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["vm1"],"NotBefore":"%s",'
        '"Description":"Virtual machine is going to be restarted as requested by authorized user.",'
        '"EventSource":"User","DurationInSeconds":-1'
    )
    lives: list[tuple[tuple[Event, ...], str]] = [
        ((), ""),
        ((scheduled,), f'{{"EventId":"{ID}","EventStatus":"Scheduled",{fields % WHEN}}}'),
        ((started,), f'{{"EventId":"{ID}","EventStatus":"Started",{fields % ""}}}'),
        ((), ""),
    ]

    for incarnation, (events, shown) in enumerate(lives, 1):
        service.publish(*events, incarnation=incarnation)
        expected = answer_with(
            f'{{"DocumentIncarnation":{incarnation},"Events":[{shown}]}}', incarnation
        )
        await client.send(get())

        assert await client.reader.readexactly(len(expected)) == expected


async def test_two_vms_of_a_scope_read_the_same_bytes(service: FakeService, site: Site) -> None:
    service.add("vm2", "127.0.0.2", "scope1")
    service.publish(FREEZE)

    one = await site.get(address="127.0.0.1")
    other = await site.get(address="127.0.0.2")

    assert one == other


async def test_a_vm_never_sees_another_scopes_events(service: FakeService, site: Site) -> None:
    service.add("other", "127.0.0.2", "scope2")
    service.publish(FREEZE)

    answer = await site.get(address="127.0.0.2")

    assert answer.body == b'{"DocumentIncarnation":1,"Events":[]}'


async def test_the_date_is_the_servers_clock_in_english(
    service: FakeService, client: Client
) -> None:
    first = await client.get()
    await service.clock.step(timedelta(days=40, seconds=1))
    later = await client.get()

    assert first.headers["Date"] == "Mon, 05 Jan 2026 12:00:00 GMT"
    assert later.headers["Date"] == "Sat, 14 Feb 2026 12:00:01 GMT"


def test_a_date_is_formatted_once_for_each_second() -> None:
    clock = FakeClock(NOON)
    line = DateLine(clock)

    texts = []
    for clock.instant in (NOON, NOON + 0.999 * SECOND, NOON + SECOND):
        line.refresh()
        texts.append(line.text)

    assert texts[0] is texts[1]
    assert texts[1:] == [b"Mon, 05 Jan 2026 12:00:00 GMT", b"Mon, 05 Jan 2026 12:00:01 GMT"]
