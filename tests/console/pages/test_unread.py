"""The scopes that nobody reads: in natural order, a page at a time, with when they last were."""

import re

from tests.builders import DAY
from tests.console.console_client import ConsoleClient, console_client, text_of


def listed(page: str) -> list[str]:
    return re.findall(r'<tr id="unread-([^"]*)"', page)


async def test_scopes_that_no_vm_reads_are_listed_until_one_does() -> None:
    vms = [{"name": f"web-{n}"} for n in (10, 2, 1)]
    async with console_client(fleet={"vms": vms}) as console:
        await console.switch_on("web-1")

        before = await console.see("/unread")
        await console.switch_on("web-2", "web-10")
        after = await console.see("/unread")

    assert listed(before) == ["vm/web-2", "vm/web-10"]
    assert "never" in text_of(before)
    assert listed(after) == []
    assert "Every scope has a VM that reads its document" in text_of(after)


async def test_a_scope_that_fell_silent_is_listed_with_its_last_read(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")
    answer = await console.http.post("/v1/clock/step", json={"by": f"{2 * DAY.days}d"})
    assert answer.is_success, answer.text

    page = await console.see("/unread")

    assert "vm/web" in listed(page)
    assert re.search(r'id="unread-vm/web".*<time ', page)


async def test_many_of_them_have_pages() -> None:
    vms = [{"name": f"web-{n}"} for n in range(60)]
    async with console_client(fleet={"vms": vms}) as console:
        first, second = await console.see("/unread"), await console.see("/unread?page=2")

        odd = await console.see("/unread?page=x")

    assert len(listed(first)) == 50
    assert listed(odd) == listed(first)
    assert listed(second) == [f"vm/web-{n}" for n in range(50, 60)]
    assert "Page 2 of 2" in text_of(second)
