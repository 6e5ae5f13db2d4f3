"""F17, I7: whoever puts an older database back, no VM sees an incarnation fall."""

# nobody else waits while a test looks at its own files
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.change import Change, published, with_event
from forewarned.core.ids import ScopeId
from forewarned.core.transitions import Scheduled
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Store, Transaction
from forewarned.storage.errors import StoreInUseError, UnwritableDirectoryError
from forewarned.storage.sqlite import restore_marker
from tests.builders import NOON, OPERATOR, a_resource, a_scope, an_event, event_id
from tests.storage.conftest import OpenSqlite
from tests.storage.store_calls import keep, load


async def schedule(store: Store, number: int) -> int:
    """One more event. The incarnation that VMs see from then on."""
    event = an_event(event_id(number), resources=["vm1"])

    def decision(tx: Transaction) -> None:
        scope = tx.load(ScopeId("scope1"))
        fact = Scheduled(scope_id=scope.id, at=tx.now, event=event)
        change = Change(scope=with_event(scope, event), transitions=(fact,))
        tx.save(published(scope, change), by=OPERATOR)

    await store.transact(decision)
    return await seen(store)


async def seen(store: Store) -> int:
    return (await load(store)).incarnation


async def restorations(store: Store) -> list[HistoryRow]:
    return await store.read(
        lambda snapshot: snapshot.history(HistoryFilter(action="store_restored"))
    )


@pytest.fixture
async def used(sqlite: OpenSqlite) -> OpenSqlite:
    """A store that has one scope with one event."""
    async with sqlite() as store:
        await keep(store, a_scope(id="scope1", resources=[a_resource("vm1")]))
        await schedule(store, 1)
    return sqlite


def put_back(backup: Path, folder: Path) -> None:
    """As a directory that was lost is brought back."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def write_over(backup: Path, folder: Path) -> None:
    """As `cp -r` does: the same files, with what was in the others."""
    for file in backup.iterdir():
        shutil.copyfile(file, folder / file.name)


def write_over_with_times(backup: Path, folder: Path) -> None:
    """As `rsync --inplace` does: no file is touched that seems to be the same."""
    for file in backup.iterdir():
        old, new = file.stat(), (folder / file.name).stat()
        if (old.st_size, old.st_mtime_ns) != (new.st_size, new.st_mtime_ns):
            shutil.copyfile(file, folder / file.name)
            os.utime(folder / file.name, ns=(old.st_atime_ns, old.st_mtime_ns))


def write_over_database(backup: Path, folder: Path) -> None:
    shutil.copyfile(backup / "forewarned.db", folder / "forewarned.db")


def unpack(backup: Path, folder: Path) -> None:
    packed = subprocess.run(
        ["tar", "-C", str(backup), "-c", "."], capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-C", str(folder), "-x"], input=packed, check=True)


def bring_only_database(backup: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    shutil.copy2(backup / "forewarned.db", folder)


@pytest.mark.parametrize(
    "restore",
    [
        put_back,
        write_over,
        write_over_with_times,
        write_over_database,
        unpack,
        bring_only_database,
    ],
)
async def test_i7_a_restored_database_shows_higher_incarnations_than_anybody_has_seen(
    used: OpenSqlite, path: Path, tmp_path: Path, restore: Callable[[Path, Path], None]
) -> None:
    shutil.copytree(path.parent, tmp_path / "backup")
    for file in (tmp_path / "backup").glob("*.mark"):
        # Yesterday's: what was written last is what was committed last.
        os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**14))
    async with used() as store:
        events_before = (await load(store)).events
        highest = [await schedule(store, number) for number in range(2, 30)][-1]

    restore(tmp_path / "backup", path.parent)
    async with used() as store:
        after = await load(store)
        [row] = await restorations(store)
        risen = await schedule(store, 30)

    assert after.incarnation > highest
    assert after.events == events_before
    assert risen == after.incarnation + 1 < 2**31
    assert row.actor == "server"
    assert "incarnations" in row.cause


async def test_i7_a_database_that_was_removed_does_not_begin_at_one_again(
    used: OpenSqlite, path: Path
) -> None:
    async with used() as store:
        highest = await seen(store)

    for file in path.parent.glob("forewarned.db*"):
        if file.suffix in {".db", ".db-wal", ".db-shm"}:
            file.unlink()
    async with used() as store:
        await store.transact(lambda tx: tx.create(a_scope(id="scope1", resources=[])))
        again = await seen(store)

    assert again > highest


async def test_i7_a_scope_that_was_lost_with_the_backup_begins_above_what_was_seen_of_it(
    used: OpenSqlite, path: Path, tmp_path: Path
) -> None:
    shutil.copytree(path.parent, tmp_path / "backup")
    late = a_scope(id="late", resources=[a_resource("vm2")])
    async with used() as store:
        await keep(store, late)
        await schedule(store, 2)
        highest = (await load(store, "late")).incarnation

    put_back(tmp_path / "backup", path.parent)
    async with used() as store:
        await store.transact(lambda tx: tx.create(a_scope(id="late", resources=[])))

        assert (await load(store, "late")).incarnation > highest


@pytest.mark.parametrize(
    ("restore", "later"),
    [(write_over_database, timedelta(0)), (put_back, timedelta(minutes=1))],
    ids=["the mark is kept", "only the clock goes on"],
)
async def test_i7_the_same_backup_restored_twice_rises_twice(
    used: OpenSqlite,
    path: Path,
    tmp_path: Path,
    clock: VirtualClock,
    *,
    restore: Callable[[Path, Path], None],
    later: timedelta,
) -> None:
    shutil.copytree(path.parent, tmp_path / "backup")
    async with used() as store:
        await schedule(store, 2)
    seen_each_time = []
    for _ in range(2):
        await clock.step(later)
        restore(tmp_path / "backup", path.parent)
        async with used() as store:
            seen_each_time.append(await seen(store))
            await schedule(store, 2)

    first, second = seen_each_time
    assert second > first + 1 > 10_000


@pytest.mark.parametrize("is_declared_again", [False, True])
async def test_i7_a_database_from_before_two_raises_is_raised_above_both(
    used: OpenSqlite, path: Path, tmp_path: Path, *, is_declared_again: bool
) -> None:
    """The second went ahead of the clock, which is all that an older database has."""
    shutil.copytree(path.parent, tmp_path / "backup")
    highest = 0
    for number in (2, 3):
        restore_marker.declare_restored(path)
        async with used() as store:
            highest = await schedule(store, number)

    write_over_database(tmp_path / "backup", path.parent)
    if is_declared_again:
        restore_marker.declare_restored(path)
    async with used() as store:
        again = await seen(store)

    assert again > highest


async def restart(path: Path) -> None:
    del path


async def move(path: Path) -> None:
    """`mv` of the directory to and fro: the files stay what they are."""
    elsewhere = path.parent.with_name("elsewhere")
    path.parent.rename(elsewhere)
    elsewhere.rename(path.parent)


async def back_up(path: Path) -> None:
    """From below a running server, as programs for that do."""
    shutil.copytree(path.parent, path.parent.with_name("backup"))
    with sqlite3.connect(path) as live, sqlite3.connect(path.with_name("other")) as copy:
        live.backup(copy)
    live.close()
    copy.close()


@pytest.mark.parametrize("happens", [restart, move, back_up])
async def test_i6_what_is_no_restore_leaves_incarnations_alone(
    used: OpenSqlite, path: Path, happens: Callable[[Path], object]
) -> None:
    async with used() as store:
        before = await schedule(store, 2)
        if happens is back_up:
            await back_up(path)
    if happens is move:
        await move(path)

    for _ in range(3):
        async with used() as store:
            assert await seen(store) == before
            assert await restorations(store) == []


async def test_i23_a_killed_server_is_no_restored_one(sqlite: OpenSqlite, path: Path) -> None:
    with subprocess.Popen(  # noqa: ASYNC220  # nobody else is there
        [sys.executable, "-m", "tests.storage.committer", str(path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as committer:
        assert committer.stdout is not None
        for _ in range(50):
            committer.stdout.readline()
        committer.kill()

    async with sqlite() as store:
        assert await restorations(store) == []


async def test_a_mark_that_is_behind_after_a_power_loss_is_no_restored_database(
    used: OpenSqlite, path: Path
) -> None:
    async with used() as store:
        before = await schedule(store, 2)

    restore_marker.mark_path(path).write_bytes((0).to_bytes(8, "big"))
    async with used() as store:
        assert await seen(store) == before


def break_mark(path: Path) -> None:
    """From now on the mark can't be written by whoever has it open."""
    mark = restore_marker.mark_path(path)
    for link in Path("/proc/self/fd").iterdir():
        if link.is_symlink() and link.readlink() == mark:
            with mark.open("rb") as unwritable:
                os.dup2(unwritable.fileno(), int(link.name), inheritable=False)


async def test_i25_a_change_that_is_on_the_disk_is_told_though_its_mark_can_not_be_written(
    used: OpenSqlite, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Or a full disk would leave pollers without a change that the store has."""
    async with used() as store:
        before = await seen(store)
        break_mark(path)

        after = [await schedule(store, 2), await schedule(store, 3)]

    assert after == [before + 1, before + 2]
    assert caplog.text.count("can't write the restore marker") == 1


def fill_disk_of_mark(path: Path) -> None:
    mark = restore_marker.mark_path(path)
    mark.unlink()
    mark.symlink_to("/dev/full")


async def test_i14_a_store_is_opened_though_its_mark_can_not_be_written(
    used: OpenSqlite, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F9: as after any commit, since changes are on the disk without it."""
    async with used() as store:
        before = await seen(store)
    fill_disk_of_mark(path)

    async with used() as store:
        after = await schedule(store, 2)

    assert after > before
    assert caplog.text.count("can't write the restore marker") == 1


async def test_an_operator_is_told_why_it_can_not_be_said_that_a_database_was_restored(
    used: OpenSqlite, path: Path
) -> None:
    """F9"""
    async with used():
        pass
    fill_disk_of_mark(path)

    with pytest.raises(UnwritableDirectoryError, match="No space left on device"):
        restore_marker.declare_restored(path)


async def test_an_operator_can_say_that_a_database_was_restored(
    used: OpenSqlite, path: Path
) -> None:
    """Of what no file tells, such as the snapshot of a whole disk."""
    async with used() as store:
        before = await seen(store)
        with pytest.raises(StoreInUseError):
            restore_marker.declare_restored(path)

    restore_marker.declare_restored(path)
    async with used() as store:
        once = await seen(store)
    async with used() as store:
        again = await seen(store)

    assert again == once > before + 10_000


async def test_the_history_does_not_go_back_in_time_with_a_restore(
    used: OpenSqlite, path: Path, clock: VirtualClock
) -> None:
    """A server's clock begins after the last instant in it."""
    restore_marker.declare_restored(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE history SET at = at + 3600000000")
    connection.close()

    async with used() as store:
        [row] = await restorations(store)

    assert row.at > clock.now() >= NOON
