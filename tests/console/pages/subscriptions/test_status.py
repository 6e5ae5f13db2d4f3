"""The pages of subscriptions, and what operators do there."""

from forewarned.service.subscriptions.model import DeliveryState, Filter, PublishedStatus
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.targets import Webhook
from tests.builders import HOUR, OPERATOR
from tests.console.console_client import ConsoleClient, text_of
from tests.publishing.receiver import receiving
from tests.service.subscriptions.deliveries import queue_message

URL = "https://ops.example.com/in?token=abc"


async def add(console: ConsoleClient, name: str = "ops", url: str = URL) -> None:
    wanted = Filter(statuses=frozenset({PublishedStatus.STARTED}), vms=("<web>-*",))
    declared = Declared(name=name, target=Webhook(url=url), filter=wanted)
    await console.use_cases.subscriptions.add(declared, by=OPERATOR)


async def fail(
    console: ConsoleClient, state: DeliveryState = DeliveryState.UNDELIVERED, name: str = "ops"
) -> int:
    error = "https://ops.example.com answered 410: <gone>"
    return await queue_message(
        console.use_cases.engine, name, state=state, error=error, rests_for=HOUR
    )


async def test_a_server_without_any_says_how_to_add_one(console: ConsoleClient) -> None:
    page = await console.see("/subscriptions")

    assert "forewarned subscription add ops https://ops.example.com/events" in text_of(page)
    assert '<a href="/subscriptions" aria-current="page">' in page


async def test_each_is_listed_with_its_health_and_no_secret(console: ConsoleClient) -> None:
    await add(console)
    await add(console, "quiet")
    await fail(console)

    page = await console.see("/subscriptions")

    text = text_of(page)
    row = "ops failing webhook https://ops.example.com statuses Started ; VMs <web>-* last delivery"
    assert f"{row} none yet 0 delivered 0 pending 1 undelivered" in text
    assert "3 attempts failed since the last delivery" in text
    assert "answered 410: <gone>" in text
    assert "quiet waiting webhook" in text
    assert 'data-every="2000"' in page
    assert "token=abc" not in page
    assert "whsec_" not in page


async def test_one_has_a_page_with_what_was_not_delivered_and_why(console: ConsoleClient) -> None:
    await add(console)
    number = await fail(console)
    waiting = await fail(console, DeliveryState.PENDING)

    page = await console.see("/subscriptions/ops")

    text = text_of(page)
    assert "Undelivered the server has stopped trying" in text
    assert f"{number} Started Reboot" in text
    assert f"{waiting} Started Reboot" in text
    assert "answered 410: <gone>" in text
    assert "The next attempt is at" in text
    assert "Shape cloudevents" in text
    for button in ("Pause", "Send a test message", "Retry undelivered messages now", "Remove…"):
        assert button in text
    assert "token=abc" not in page
    assert "whsec_" not in page


async def test_one_is_paused_and_resumed(console: ConsoleClient) -> None:
    await add(console)

    paused = await console.send("/subscriptions/ops/pause")
    page = text_of(await console.see(paused.headers["Location"]))
    resumed = await console.send("/subscriptions/ops/resume")

    assert (paused.status_code, resumed.status_code) == (303, 303)
    assert "Saved." in page
    assert "Health paused" in page
    assert "Resume" in page
    assert "Health waiting" in text_of(await console.see("/subscriptions/ops"))


async def test_what_was_given_up_is_delivered_again(console: ConsoleClient) -> None:
    await add(console)
    await fail(console)

    sent = await console.send("/subscriptions/ops/redeliver")

    page = text_of(await console.see(sent.headers["Location"]))
    assert "Messages that were not delivered are being tried again now." in page
    assert "Undelivered 0" in page


async def test_a_test_message_is_sent_and_its_outcome_shown(console: ConsoleClient) -> None:
    async with receiving() as receiver:
        await add(console, url=receiver.url)
        sent = await console.send("/subscriptions/ops/test")
    await add(console, "down", url="http://127.0.0.1:9/")
    failed = await console.send("/subscriptions/down/test")

    assert len(receiver.received) == 1
    assert "The test message was delivered." in text_of(await console.see(sent.headers["Location"]))
    assert failed.status_code == 400
    assert "The test message was not delivered: " in text_of(failed.text)


async def test_removing_asks_first_and_says_what_goes_with_it(console: ConsoleClient) -> None:
    await add(console)
    await fail(console)

    asked = text_of(await console.see("/subscriptions/ops/remove"))
    still = await console.see("/subscriptions/ops")
    removed = await console.send("/subscriptions/ops/remove")
    again = await console.send("/subscriptions/ops/remove")

    assert "1 message that was not delivered will be removed with it" in asked
    assert "Keep it" in asked
    assert still
    assert removed.status_code == again.status_code == 303
    assert "Removed." in text_of(await console.see(removed.headers["Location"]))
    assert await console.use_cases.subscriptions.show_all() == []


async def test_one_of_the_settings_file_is_not_to_be_removed_here(console: ConsoleClient) -> None:
    declared = Declared(name="ops", target=Webhook(url=URL))
    await console.use_cases.subscriptions.keep([declared], by=OPERATOR)

    page = text_of(await console.see("/subscriptions/ops"))
    refused = await console.send("/subscriptions/ops/remove")

    assert "managed by the settings file" in page
    assert "Remove…" not in page
    assert refused.status_code == 400
    assert "change it there, under [[subscriptions]]" in text_of(refused.text)


async def test_an_unknown_one_is_not_found(console: ConsoleClient) -> None:
    page = text_of(await console.see("/subscriptions/nobody", 404))

    assert "here is no subscription 'nobody'" in page
