"""Whatever is changed in history behind the server's back is found, and named."""

from pathlib import Path

import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.storage.errors import CannotOpenError, OlderDatabaseError
from forewarned.storage.history.openings import opened_database, opened_file
from forewarned.storage.history.verification import Head, parse_head
from tests.postgresql.databases import Database
from tests.storage.history.stored_history import (
    Place,
    SqlitePlace,
    chain,
    filled,
    findings,
    found_in,
    record,
    verified,
)

INSERT = (
    "INSERT INTO history (id, at, actor, address, action, scope_id, resources, cause)"
    " SELECT {id}, at, actor, address, action, scope_id, resources, 'never happened'"
    " FROM history WHERE id = {like}"
)


async def test_history_that_nobody_touched_is_right(place: Place) -> None:
    async with filled(place) as store:
        await store.transact(record("not chained yet"))

        found = verified(place)

    assert (found.findings, found.checked, found.unchained) == ([], 10, 1)
    assert found.head.number == 10


async def test_the_head_stays_what_it_was_while_history_goes_on(place: Place) -> None:
    async with filled(place) as store:
        head = parse_head(str(verified(place).head))
        await store.transact(record("later"))
        await chain(store, rows=1)

    assert findings(place, head) == []


async def test_an_empty_history_is_right(place: Place) -> None:
    async with place.store():
        pass

    assert (findings(place), verified(place).checked) == ([], 0)


async def test_each_edited_row_is_named_and_no_other_whichever_column_it_was(place: Place) -> None:
    async with filled(place):
        pass

    for row, column in enumerate(
        (
            *("at = at + 1", "actor = 'bob'", "address = ''", "action = 'x'", "scope_id = 'x'"),
            *("event_id = 'x'", "event_type = 'Reboot'", "resources = '[0]'", "cause = 'x'"),
        ),
        start=2,
    ):
        place.sql(f"UPDATE history SET {column} WHERE id = {row}")

    assert findings(place) == [("edited", row) for row in range(2, 11)]


async def test_removed_rows_are_named(place: Place) -> None:
    async with filled(place):
        pass

    place.sql("DELETE FROM history WHERE id IN (1, 4, 10)")

    assert findings(place) == [("removed", 1), ("removed", 4), ("removed", 10)]


async def test_rows_that_were_swapped_are_named(place: Place) -> None:
    async with filled(place):
        pass

    for one, other in ((2, 3), (1, 10), (4, 8)):
        place.sql(f"UPDATE history SET id = -1 WHERE id = {one}")
        place.sql(f"UPDATE history SET id = {one} WHERE id = {other}")
        place.sql(f"UPDATE history SET id = {other} WHERE id = -1")

    assert [found.message for found in found_in(place)] == [
        "rows 1 and 10 were swapped",
        "rows 2 and 3 were swapped",
        "rows 4 and 8 were swapped",
    ]


async def test_rows_that_were_swapped_in_the_chain_are_named(place: Place) -> None:
    async with filled(place):
        pass

    place.sql("UPDATE history_chain SET history_id = -1 WHERE number = 3")
    place.sql("UPDATE history_chain SET history_id = 3 WHERE number = 7")
    place.sql("UPDATE history_chain SET history_id = 7 WHERE number = 3")

    assert [found.kind for found in found_in(place)] == ["swapped"]


async def test_a_row_that_was_inserted_among_old_ones_is_named(place: Place) -> None:
    async with filled(place):
        pass

    place.sql(INSERT.format(id=-7, like=4))

    assert findings(place) == [("inserted", -7)]


async def test_it_is_named_after_the_server_has_chained_it_as_well(place: Place) -> None:
    async with filled(place):
        pass
    place.sql(
        "UPDATE sqlite_sequence SET seq = 20"
        if isinstance(place, SqlitePlace)
        else "SELECT setval(pg_get_serial_sequence('history', 'id'), 20)"
    )

    async with place.store() as store:
        await store.transact(record("row 21"))
        await chain(store, rows=1)
    place.sql(INSERT.format(id=15, like=4))
    place.sql("DELETE FROM notes WHERE key = 'history is chained up to'")
    async with place.store() as store:
        await chain(store, rows=1)

    assert findings(place) == [("inserted", 15)]


async def test_rows_that_nodes_wrote_side_by_side_are_right_after_a_clock_was_put_back(
    place: Place,
) -> None:
    async with filled(place) as store:
        # The higher number is committed first, which only PostgreSQL chains first.
        place.sql(INSERT.format(id=22, like=2))
        place.sql(INSERT.format(id=21, like=2))
        await chain(store, rows=2)

    assert findings(place) == []


async def test_a_row_that_takes_the_place_of_another_is_named(place: Place) -> None:
    async with filled(place):
        pass

    place.sql("DELETE FROM history WHERE id = 5")
    place.sql(INSERT.format(id=5, like=4))

    assert findings(place) == [("edited", 5)]


async def test_a_digest_of_the_chain_that_was_changed_is_named_and_not_its_row(
    place: Place,
) -> None:
    async with filled(place):
        pass

    place.sql(f"UPDATE history_chain SET digest = '{'ab' * 32}' WHERE number = 4")

    assert findings(place) == [("chain_changed", 4)]
    assert verified(place).checked == 10


async def test_a_row_that_was_taken_out_of_the_chain_as_well_is_missed(place: Place) -> None:
    async with filled(place):
        pass

    place.sql("DELETE FROM history WHERE id = 4")
    place.sql("DELETE FROM history_chain WHERE number = 4")

    [found] = found_in(place)
    assert (found.kind, found.number) == ("chain_removed", 4)


async def test_a_row_that_is_marked_as_removed_by_retention_is_missed_if_that_never_ran(
    place: Place,
) -> None:
    async with filled(place):
        pass

    place.sql("DELETE FROM history WHERE id = 4")
    place.sql("UPDATE history_chain SET history_id = NULL WHERE number = 4")

    [found] = found_in(place)
    assert (found.kind, found.number) == ("removed", 4)


async def test_a_chain_that_was_shortened_is_found_with_its_head(place: Place) -> None:
    async with filled(place):
        head = verified(place).head

    place.sql("DELETE FROM history WHERE id > 7")
    place.sql("DELETE FROM history_chain WHERE number > 7")

    assert findings(place) == []
    assert findings(place, head) == [("chain_removed", None)]
    assert "ends at number 7" in found_in(place, head)[0].message


async def test_a_chain_that_was_written_anew_is_found_with_its_head(place: Place) -> None:
    async with filled(place):
        head = verified(place).head

    place.sql("UPDATE history SET cause = 'forged' WHERE id = 2")
    place.sql("DELETE FROM history_chain")
    place.sql("DELETE FROM notes WHERE key = 'history is chained up to'")
    async with place.store() as store:
        await chain(store, rows=10)

    assert findings(place) == []
    assert findings(place, head) == [("head_differs", None)]


@pytest.mark.parametrize("text", ["", "7", "7:", "7:ab", "x:" + "0" * 64, "²:" + "0" * 64])
def test_a_head_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NUMBER:DIGEST"):
        parse_head(text)


def test_a_head_is_read_as_it_is_printed() -> None:
    head = Head(12, "ab" * 32)

    assert parse_head(f" {head}\n") == head


def test_a_store_that_is_not_there_is_refused(tmp_path: Path, empty_database: Database) -> None:
    with pytest.raises(CannotOpenError, match="there is no store in"), opened_file(tmp_path / "x"):
        pass
    with (
        pytest.raises(OlderDatabaseError, match="forewarned migrate"),
        opened_database(DatabaseUrl(empty_database.url)),
    ):
        pass
