"""Windows that fetch their pages again after a change, all at nearly the same moment."""

import asyncio

import httpx2

from forewarned.console.refreshes import HEADER
from forewarned.security.identities import Role
from tests.console.console_client import ConsoleClient, assert_guarded, console_client
from tests.control.access_setup import token_of


async def refresh(console: ConsoleClient, path: str = "/") -> httpx2.Response:
    """As the script of an open page does it."""
    answer = await console.http.get(path, headers={HEADER: "true"})
    assert_guarded(answer)
    return answer


async def test_windows_that_fetch_a_page_together_are_given_one_answer(
    console: ConsoleClient,
) -> None:
    console.store.reads_left = 1

    pages = await asyncio.gather(*(refresh(console) for _ in range(10)))

    assert [page.status_code for page in pages] == [200] * 10
    assert len({page.text for page in pages}) == 1


async def test_a_window_that_is_closed_takes_the_page_from_no_other(console: ConsoleClient) -> None:
    console.store.reads_left = 1
    closed = asyncio.create_task(refresh(console))
    await asyncio.sleep(0)
    other = asyncio.create_task(refresh(console))
    await asyncio.sleep(0)

    closed.cancel()

    assert (await other).status_code == 200


async def test_what_has_changed_is_in_a_page_that_is_fetched_after_it(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")
    before = await refresh(console)

    await console.send("/actions/schedule", type="Reboot", vm="web", step="send")
    after = await refresh(console)

    [event] = await console.events()
    assert event["event_id"] not in before.text
    assert event["event_id"] in after.text


async def test_a_page_that_is_opened_is_made_for_its_visitor(console: ConsoleClient) -> None:
    await refresh(console)
    console.store.is_down = True

    assert (await console.http.get("/")).status_code == 503


async def test_pages_with_other_addresses_are_others(console: ConsoleClient) -> None:
    all_of_it, found = await asyncio.gather(
        refresh(console, "/fleet"), refresh(console, "/fleet?find=web")
    )

    assert all_of_it.text != found.text


async def test_visitors_with_other_roles_are_given_other_pages() -> None:
    """S12: no page shows what its visitor may not do."""
    async with console_client(access="token") as console:
        shown = []
        for role in (Role.ADMIN, Role.READER):
            await console.send("/sign-in", token=token_of(role))
            shown.append((await refresh(console)).text)

    assert ["/actions/schedule" in text for text in shown] == [True, False]


async def test_a_download_is_never_shared(console: ConsoleClient) -> None:
    await console.switch_on("web")

    first, second = await asyncio.gather(
        *(console.http.get("/history.csv", headers={HEADER: "true"}) for _ in range(2))
    )

    assert first.text == second.text != ""
