"""Names for what somebody has begun to type."""

import re

import pytest

from tests.console.console_client import ConsoleClient, console_client, text_of


def _names(page: str) -> list[str]:
    return re.findall(r'data-value="([^"]*)"', page)


@pytest.mark.parametrize(
    ("what", "like", "names"),
    [
        ("vms", "DB", ["db-0", "db-1", "db-2"]),
        ("vms", "eb", ["web"]),
        ("vms", "%", []),
        ("scopes", "db", ["avset/db"]),
        ("scopes", "vm/", ["vm/cheap", "vm/report", "vm/web"]),
        ("sets", "", ["avset/db", "vmss/api/0"]),
        ("hosts", "rack", ["rack1", "rack2"]),
        ("any", "rack", ["rack1", "rack2"]),
        ("any", "db", ["db-0", "db-1", "db-2", "avset/db"]),
    ],
)
async def test_names_are_suggested_for_a_part_of_them(
    console: ConsoleClient, what: str, like: str, names: list[str]
) -> None:
    page = await console.see(f"/suggest/{what}?like={like}")

    assert _names(page) == names
    assert ("Nothing matches" in page) == (not names)


async def test_a_suggestion_tells_a_vm_from_others_by_its_scope_and_host(
    console: ConsoleClient,
) -> None:
    page = text_of(await console.see("/suggest/vms?like=web"))
    host = text_of(await console.see("/suggest/hosts?like=rack1"))

    assert "web vm/web, on rack1" in page
    assert "rack1 2 VMs" in host


async def test_only_the_best_few_of_many_are_suggested() -> None:
    fleet = {"vms": [{"name": f"shop-{number:03}"} for number in range(300)]}
    async with console_client(fleet=fleet) as console:
        page = await console.see("/suggest/vms?like=shop-1")

        assert _names(page) == [f"shop-{number}" for number in range(100, 110)]
        assert "There are more" in page


async def test_what_is_typed_and_what_things_are_called_is_text(console: ConsoleClient) -> None:
    page = await console.see("/suggest/vms?like=<script>alert(1)</script>")

    assert "<script>" not in page


async def test_there_are_no_suggestions_of_anything_else(console: ConsoleClient) -> None:
    await console.see("/suggest/passwords?like=a", 404)


async def test_suggestions_are_for_those_who_may_look() -> None:
    async with console_client(access="token") as console:
        answer = await console.http.get("/suggest/vms?like=web")

        assert answer.status_code == 303
        assert "web" not in answer.text
