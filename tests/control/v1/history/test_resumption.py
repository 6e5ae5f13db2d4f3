"""A watcher that comes back with the id of its last message misses nothing, and hears nothing twice."""

from typing import Any

import pytest

from forewarned.control.v1.history.missed_changes import MissedChanges
from tests.control.control_api import ControlApi
from tests.control.v1.test_changes import Reader, watching


async def messages(reader: Reader, count: int) -> list[tuple[str, Any]]:
    return [await reader.message() for _ in range(count)]


async def one_life(control: ControlApi, vm: str) -> None:
    """Scheduled, approved, started, completed."""
    event = await control.schedule("Reboot", vm)
    await control.post(f"/v1/events/{event['event_id']}/approve")
    await control.post(f"/v1/events/{event['event_id']}/complete")


LIFE = ["scheduled", "approved", "started", "completed"]


async def test_every_message_has_an_id_of_its_own(control: ControlApi) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()
        ids = [reader.last_id]
        await one_life(control, "web")
        for _ in range(4):
            await reader.message()
            ids.append(reader.last_id)

    assert len(set(ids)) == 5
    assert all(ids)


@pytest.mark.parametrize("heard", range(5))
async def test_what_happened_meanwhile_follows_the_greeting_wherever_it_broke_off(
    control: ControlApi, heard: int
) -> None:
    await control.switch_on("web", "report")
    async with watching(control) as reader:
        await reader.message()
        await one_life(control, "web")
        await messages(reader, heard)
        last_id = reader.last_id
    await one_life(control, "report")

    async with watching(control, last_id=last_id) as reader:
        hello = await reader.message()
        missed = await messages(reader, 8 - heard)
        await control.schedule("Reboot", "web")
        live = await reader.message()

    assert (hello[1]["resumed"], hello[1]["lost"]) == (True, None)
    names = [(name, told["event"]["resources"]) for name, told in missed]
    assert names == ([(n, ["web"]) for n in LIFE] + [(n, ["report"]) for n in LIFE])[heard:]
    assert live[0] == "scheduled"


async def test_a_watcher_that_breaks_off_while_it_catches_up_goes_on_from_there(
    control: ControlApi,
) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()
        last_id = reader.last_id
    await one_life(control, "web")

    names = []
    for _ in range(4):
        async with watching(control, last_id=last_id) as reader:
            await reader.message()
            names.append((await reader.message())[0])
            last_id = reader.last_id

    assert names == LIFE


async def test_the_greeting_can_be_gone_on_from_before_anything_was_told(
    control: ControlApi,
) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()
        first = reader.last_id
    await control.schedule("Reboot", "web")
    async with watching(control, last_id=first) as reader:
        await reader.message()
        again = reader.last_id

    async with watching(control, last_id=again) as reader:
        await reader.message()
        name, _ = await reader.message()

    assert name == "scheduled"


async def test_a_client_that_can_not_set_a_header_says_it_in_the_query_and_the_header_counts(
    control: ControlApi,
) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()
        old = reader.last_id
        await one_life(control, "web")
        await messages(reader, 3)
        newer = reader.last_id

    async with watching(control, query=f"last_event_id={old}") as reader:
        by_query = await messages(reader, 2)
    async with watching(control, query=f"last_event_id={old}", last_id=newer) as reader:
        by_header = await messages(reader, 2)

    assert [name for name, _ in by_query] == ["hello", "scheduled"]
    assert [name for name, _ in by_header] == ["hello", "completed"]


@pytest.mark.parametrize(
    ("last_id", "why"),
    [
        ("7", "not an id that this server gives out"),
        ("x" * 500, "not an id that this server gives out"),
        ("deadbeef.7", "belongs to another store"),
        ("deadbeef.700:720:710", "belongs to another store"),
        ("{store}.900000", "has not reached that id"),
    ],
)
async def test_an_id_that_says_nothing_here_is_told_as_such_with_what_is_open(
    control: ControlApi, last_id: str, why: str
) -> None:
    await control.switch_on("web")
    async with watching(control) as reader:
        await reader.message()
        store = reader.last_id.partition(".")[0]
    event = await control.schedule("Reboot", "web")

    async with watching(control, last_id=last_id.format(store=store)) as reader:
        _, hello = await reader.message()
        await control.post(f"/v1/events/{event['event_id']}/approve")
        live = await reader.message()

    assert not hello["resumed"]
    assert why in hello["lost"]
    assert hello["lost"].startswith("changes since ")
    assert len(hello["lost"]) < 300
    assert [open_["event_id"] for open_ in hello["events"]] == [event["event_id"]]
    assert live[0] == "approved"


async def test_what_was_missed_is_read_a_page_at_a_time(control: ControlApi) -> None:
    await control.switch_on("web", "report")
    engine = control.services.engine
    since = await engine.ask(lambda snapshot: snapshot.position())
    for vm in ("web", "report", "web"):
        await one_life(control, vm)
    upto = await engine.ask(lambda snapshot: snapshot.position())

    missed = MissedChanges(engine, since=since, upto=upto, page=5)
    await missed.read()
    pieces = [piece async for piece in missed.messages()]

    assert [piece.count(b"data: ") for piece in pieces] == [5, 5, 2]
    assert missed.is_told


async def test_a_store_that_fails_on_the_way_ends_the_stream_where_it_can_go_on(
    control: ControlApi,
) -> None:
    await control.switch_on("web")
    engine = control.services.engine
    since = await engine.ask(lambda snapshot: snapshot.position())
    await one_life(control, "web")
    upto = await engine.ask(lambda snapshot: snapshot.position())

    missed = MissedChanges(engine, since=since, upto=upto, page=2)
    await missed.read()
    pieces = []
    async for piece in missed.messages():
        pieces.append(piece)
        control.store.is_down = True

    assert b"event: dropped" in pieces[-1]
    assert not missed.is_told
    id_of = [piece.rpartition(b"id: ")[2].split(b"\n")[0] for piece in pieces]
    assert id_of[0] == id_of[1]
