"""The page of nodes."""

from tests.console.console_client import ConsoleClient, text_of


async def test_a_server_alone_is_its_only_node(console: ConsoleClient) -> None:
    page = await console.see("/nodes")

    assert "node-1 (this) 1.0 fresh 0 ms" in text_of(page)
    assert "metadata http://node-1:80" in text_of(page)
    assert "One copy" not in text_of(page)
    assert 'data-every="2000"' in page
