"""The clock bar moves the emulator's time, and says plainly that it is virtual."""

import pytest

from forewarned.clock import SystemClock
from tests.console.console_client import ConsoleClient, console_client, text_of


async def test_virtual_time_is_plainly_said(console: ConsoleClient) -> None:
    assert "Virtual time, paused" in text_of(await console.see("/"))


async def test_real_time_has_nothing_to_move() -> None:
    async with console_client(clock=SystemClock(), mode="service") as console:
        page = text_of(await console.see("/"))
        answer = await console.send("/clock/step", by="1m")

        assert "Real time" in page
        assert "+1 minute" not in page
        assert "can't be moved" in text_of(answer.text)


async def test_time_is_stepped_run_and_paused(console: ConsoleClient) -> None:
    await console.send("/clock/step", back="/fleet")
    stepped = await console.ask("/v1/clock")
    await console.send("/clock/speed", speed="60")
    running = await console.ask("/v1/clock")
    await console.send("/clock/pause")

    assert stepped["now"].endswith("12:01:00Z")
    assert running["speed"] == 60
    assert (await console.ask("/v1/clock"))["state"] == "paused"


async def test_time_goes_to_the_next_not_before_and_to_each_change(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")

    await console.send("/clock/next-not-before")
    [started] = await console.events()
    for _ in range(5):
        await console.send("/clock/next-change")

    assert started["status"] == "Started"
    assert (await console.ask("/v1/clock"))["now"] > started["started_at"]
    assert await console.events() == []


async def test_nowhere_to_go_is_said(console: ConsoleClient) -> None:
    answer = await console.send("/clock/next-not-before")

    assert answer.status_code == 400
    assert "no event is waiting for its NotBefore" in text_of(answer.text)


@pytest.mark.parametrize("speed", ["", "fast", "nan", "-1", "inf", "1e9"])
async def test_a_speed_that_is_none_is_refused(console: ConsoleClient, speed: str) -> None:
    answer = await console.send("/clock/speed", speed=speed)

    assert "The clock has not moved" in text_of(answer.text)
    assert (await console.ask("/v1/clock"))["state"] == "paused"


@pytest.mark.parametrize("by", ["0s", "-1m", "soon", "9999999d"])
async def test_a_step_that_is_none_is_refused(console: ConsoleClient, by: str) -> None:
    answer = await console.send("/clock/step", by=by)

    assert answer.status_code == 400
    assert "The clock has not moved" in text_of(answer.text)
    assert (await console.ask("/v1/clock"))["now"].endswith("12:00:00Z")


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil", "", "/\n"])
async def test_the_bar_leads_back_to_pages_of_ours_only(console: ConsoleClient, back: str) -> None:
    answer = await console.send("/clock/step", back=back)

    assert answer.headers["Location"] == "/"
