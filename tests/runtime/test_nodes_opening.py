"""A node that can't be opened to its end."""

from functools import partial
from pathlib import Path

import pytest
from typing_extensions import override

from forewarned.clock import SystemClock
from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.ports import Snapshot
from forewarned.storage.postgres.nodes.node_store import node_store
from tests.bases import a_basis
from tests.builders import a_node_record
from tests.postgresql.databases import Database


class NotLoadedError(Exception):
    pass


class Unloadable(BoardDelivery):
    @override
    def load(self, snapshot: Snapshot) -> None:
        raise NotLoadedError


def _pipes() -> set[str]:
    folder = Path("/proc/self/fd")
    return {str(each.readlink()) for each in folder.iterdir() if each.is_symlink()}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list them")
async def test_a_node_that_can_not_load_its_store_leaves_nothing_open(
    database: Database, tmp_path: Path
) -> None:
    store = node_store(
        DatabaseUrl(database.url),
        tmp_path,
        serves=a_node_record().serves,
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        rules={},
    )
    async with store:
        application = Application(store, SystemClock(), a_basis(), Unloadable(), shared=store)
        before = _pipes()
        with pytest.raises(NotLoadedError):
            async with application:
                pass
        after = _pipes()

    assert {each for each in after - before if each.startswith("pipe:")} == set()
