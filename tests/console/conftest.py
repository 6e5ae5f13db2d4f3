from collections.abc import AsyncIterator, Iterator
from types import CodeType

import pytest
from jinja2 import Environment

from tests.console.console_client import ConsoleClient, console_client


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once() -> Iterator[None]:
    """Not for each test, though each has a console of its own: that took five sixths of its time."""
    compiled: dict[tuple[str, str | None], CodeType] = {}
    anew = Environment.compile

    def once(
        self: Environment, source: str, name: str | None = None, filename: str | None = None
    ) -> CodeType:
        if (source, name) not in compiled:
            compiled[source, name] = anew(self, source, name, filename)
        return compiled[source, name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", once)
        yield


@pytest.fixture
async def console(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client() as seen:
        yield seen
