"""The keeper of history: chains what is written, and removes what is old, behind everyone's back."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.history.keeper import HistoryKeeper
from forewarned.service.listings import HistoryFilter
from forewarned.storage.history.openings import opened_file
from forewarned.storage.history.verification import Verified, verify
from tests.builders import DAY, HOUR, NOON
from tests.control.control_api import control_api
from tests.storage.history.stored_history import SqlitePlace, record

SOON = timedelta(0)


@pytest.fixture
def place(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path / "forewarned.db", VirtualClock(NOON, speed=0))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def verified(place: SqlitePlace) -> Verified:
    with opened_file(place.path) as database:
        return verify(database, None, lambda *_: None)


async def test_what_is_committed_is_chained_soon_after(place: SqlitePlace) -> None:
    async with place.store() as store:
        engine = Engine(store)
        keeper = HistoryKeeper(engine, pause=SOON)
        engine.tell(keeper.hear)
        async with keeper:
            await engine.decide(record("one", "two"))
            await until(lambda: keeper.chained == 2)
            await engine.decide(record("three"))
            await until(lambda: keeper.chained == 3)

    assert verified(place).checked == 3


async def test_a_server_that_stops_chains_everything_first(place: SqlitePlace) -> None:
    async with place.store() as store:
        engine = Engine(store)
        async with HistoryKeeper(engine, pause=HOUR):
            await engine.decide(record(*map(str, range(1_200))))

    found = verified(place)
    assert (found.checked, found.unchained) == (1_200, 0)


async def test_a_server_that_starts_chains_what_another_left(place: SqlitePlace) -> None:
    async with place.store() as store:
        await Engine(store).decide(record("left behind"))

    async with place.store() as store, HistoryKeeper(Engine(store), pause=SOON) as keeper:
        await until(lambda: keeper.chained == 1)


async def test_a_store_that_can_not_be_reached_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with control_api() as control:
        engine = control.services.engine
        control.store.is_down = True
        keeper = HistoryKeeper(engine, pause=SOON, patrol=timedelta(seconds=0.02))
        async with keeper:
            await until(lambda: "can't add history to its hash chain" in caplog.text)
            control.store.is_down = False
            await control.switch_on("web")
            await until(lambda: keeper.chained > 0)
            control.store.is_down = True

    assert caplog.text.count("can't add history to its hash chain") == 1


async def test_old_rows_are_removed_in_batches_and_that_is_logged(
    place: SqlitePlace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with place.store() as store:
        engine = Engine(store)
        await engine.decide(record(*map(str, range(1_200))))
        await HistoryKeeper(engine).chain()
        await place.clock.step(2 * DAY)
        await engine.decide(record("young"))
        async with HistoryKeeper(engine, retention=DAY) as keeper:
            await until(lambda: keeper.removed == 1_199)
            await until(lambda: "removed old history" in caplog.text)
        left = await engine.ask(lambda snapshot: snapshot.history(HistoryFilter()))

    # The last row that was chained by then stays.
    assert [row.cause for row in left if row.actor != "server"] == ["young", "1199"]
    assert verified(place).findings == []


async def test_without_a_retention_nothing_is_removed(place: SqlitePlace) -> None:
    async with place.store() as store:
        engine = Engine(store)
        await engine.decide(record("one", "two"))
        await place.clock.step(1_000 * DAY)
        async with HistoryKeeper(engine, pause=SOON) as keeper:
            await until(lambda: keeper.chained == 2)

        assert len(await engine.ask(lambda s: s.history(HistoryFilter()))) == 2


async def test_what_is_kept_for_a_short_time_is_removed_more_often_than_once_an_hour(
    place: SqlitePlace,
) -> None:
    async with place.store() as store:
        engine = Engine(store)
        async with HistoryKeeper(engine, retention=timedelta(seconds=0.2)) as keeper:
            await engine.decide(record("old", "older"))
            await place.clock.step(HOUR)
            await engine.decide(record("young"))
            await keeper.chain()
            await until(lambda: keeper.removed == 2)


async def test_an_event_with_a_row_of_history_left_can_still_be_explained_and_listed() -> None:
    async with control_api() as control:
        await control.switch_on("web")
        event = await control.schedule("Reboot", "web")
        path = f"/v1/events/{event['event_id']}"
        await control.post(f"{path}/approve")
        await control.post(f"{path}/complete")
        keeper = control.services.use_cases.history
        await keeper.chain()
        clock = control.services.use_cases.clock_control
        await clock.step(2 * DAY)
        removed = await keeper.remove(DAY)

        explained = await control.get(f"{path}/explain")
        waited = await control.get(path, wait="completed")
        metrics = (await control.http.get("/metrics")).text

    assert removed > 0
    assert explained["event"]["status"] == waited["status"] == "Completed"
    assert [row["action"] for row in explained["history"]] == ["completed"]
    assert f"forewarned_history_removed_rows_total {removed}.0" in metrics


async def test_a_removal_says_if_the_store_can_not_be_reached() -> None:
    async with control_api() as control:
        control.store.is_down = True

        with pytest.raises(StoreUnavailableError):
            await control.services.use_cases.history.remove(DAY)
        control.store.is_down = False
