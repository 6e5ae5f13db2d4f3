"""The console's list of the nodes that share a store."""

from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, expect

from tests.browser.windows import open_window
from tests.cluster.nodes import Node, running_nodes
from tests.postgresql.databases import Database


@pytest.fixture
def nodes(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_nodes(
        folder, database.url, vms={"web": "127.10.0.1"}, names=("a", "b")
    ) as running:
        yield list(running.values())


async def test_the_list_of_nodes_is_brought_up_to_date_by_itself(
    nodes: list[Node], browser: Browser
) -> None:
    """A node that dies changes nothing in the store, so no change tells of it."""
    first, second = nodes
    window = await open_window(browser, f"http://{first.control}")
    await window.open("/nodes")
    rows = window.page.locator("#nodes tbody tr")
    other = rows.filter(has_text=second.control)
    await expect(rows).to_have_count(2)
    await expect(other).to_contain_text("fresh")

    second.kill()

    await expect(other).to_contain_text("stale")
    await expect(rows.filter(has_text=first.control)).to_contain_text("fresh")
    assert await window.close() == []
