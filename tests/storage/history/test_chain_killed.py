"""I23: whenever the process that chains is killed, all that was acknowledged is chained, once."""

import random
import subprocess
import sys

from tests.effort import amount
from tests.storage.history.stored_history import Place, PostgresPlace, SqlitePlace, verified

LIVES = amount(2, 5)


def live_and_be_killed(where: str, life: int, chance: random.Random) -> list[str]:
    """What was acknowledged before the process was killed, at any moment."""
    acknowledged: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", "tests.storage.history.chaining_process", where, str(life)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        acknowledged += [process.stdout.readline().strip() for _ in range(chance.randint(5, 20))]
        process.kill()
        acknowledged += process.stdout.read().split()
    return acknowledged


async def test_all_that_was_acknowledged_is_chained_afterwards_and_nothing_twice(
    place: Place,
) -> None:
    where = place.database.url if isinstance(place, PostgresPlace) else _path(place)
    chance, acknowledged = random.Random(17), []
    for life in range(LIVES):
        acknowledged += live_and_be_killed(where, life, chance)

    async with place.store() as store:
        while verified(place).unchained:
            await store.transact(lambda tx: tx.chain_history(100))

    found = verified(place)
    assert found.findings == []
    chained = place.sql(
        "SELECT cause FROM history_chain JOIN history ON history.id = history_id"
        " WHERE action = 'turned_away'"
    )
    causes = [cause for [cause] in chained]
    assert set(acknowledged) <= set(causes)
    assert len(causes) == len(set(causes))
    assert found.checked == found.head.number


def _path(place: Place) -> str:
    assert isinstance(place, SqlitePlace)
    return str(place.path)
