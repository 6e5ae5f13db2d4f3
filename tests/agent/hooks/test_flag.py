"""A health file: made or removed in one step, and put back only where it is still ours (I30)."""

import asyncio
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from forewarned.agent.model import HookOutcome, Phase, Verdict
from tests.agent.hooks.calls import EVENT, a_call, a_hook, undone


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "draining"


def names_beside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir())


def test_the_file_is_there_while_draining_and_gone_afterwards(path: Path) -> None:
    hook = a_hook("flag", path=str(path), content="{event_id}", mode="0640")

    outcome = asyncio.run(hook.run(a_call()))
    there = path.read_text(), stat.S_IMODE(path.stat().st_mode)
    back = asyncio.run(undone(hook, outcome))

    assert outcome.verdict is Verdict.DONE
    assert there == (EVENT, 0o640)
    assert back.verdict is Verdict.DONE
    assert names_beside(path) == []


def test_a_file_that_was_there_is_somebody_elses(path: Path) -> None:
    path.write_text("by hand")
    hook = a_hook("flag", path=str(path))

    outcome = asyncio.run(hook.run(a_call()))
    asyncio.run(undone(hook, outcome))

    assert outcome.verdict is Verdict.DONE
    assert path.read_text() == "by hand"


def test_a_file_that_was_made_anew_since_is_somebody_elses(path: Path) -> None:
    hook = a_hook("flag", path=str(path))

    outcome = asyncio.run(hook.run(a_call()))
    path.write_text("by hand: keep it out")
    back = asyncio.run(undone(hook, outcome))

    assert back.verdict is Verdict.DONE
    assert path.read_text() == "by hand: keep it out"


def test_a_file_that_is_removed_comes_back_as_it_was(path: Path) -> None:
    path.write_bytes(b"\x00healthy\xff")
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    hook = a_hook("flag", path=str(path), draining="absent")

    outcome = asyncio.run(hook.run(a_call()))
    gone = names_beside(path)
    asyncio.run(undone(hook, outcome))

    after = path.stat()
    assert gone == []
    assert path.read_bytes() == b"\x00healthy\xff"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert names_beside(path) == ["draining"]


def test_a_file_that_was_not_there_does_not_come_back(path: Path) -> None:
    hook = a_hook("flag", path=str(path), draining="absent")

    outcome = asyncio.run(hook.run(a_call()))
    asyncio.run(undone(hook, outcome))

    assert outcome.verdict is Verdict.DONE
    assert names_beside(path) == []


def test_a_file_that_came_back_by_itself_stays_as_it_is(path: Path) -> None:
    path.write_text("old")
    hook = a_hook("flag", path=str(path), draining="absent")

    outcome = asyncio.run(hook.run(a_call()))
    path.write_text("new, by the boot")
    asyncio.run(undone(hook, outcome))

    assert path.read_text() == "new, by the boot"


@pytest.mark.parametrize("draining", ["present", "absent"])
def test_what_undo_needs_is_kept_before_anything_is_changed(path: Path, draining: str) -> None:
    """I30: the agent may be killed at any moment."""
    if draining == "absent":
        path.write_text("healthy")
    before = names_beside(path)

    class DiedError(Exception):
        pass

    def die(_: object) -> None:
        raise DiedError

    hook = a_hook("flag", path=str(path), draining=draining)
    with pytest.raises(DiedError):
        asyncio.run(hook.run(replace(a_call(), save_notes=die)))

    assert names_beside(path) == before


def test_an_undo_with_no_notes_changes_nothing(path: Path) -> None:
    path.write_text("by hand")

    for draining in ("present", "absent"):
        hook = a_hook("flag", path=str(path), draining=draining)
        outcome = asyncio.run(undone(hook, HookOutcome(verdict=Verdict.INTERRUPTED)))
        assert outcome.detail == "nothing was changed"

    assert path.read_text() == "by hand"


def test_what_can_not_be_changed_is_a_failure(tmp_path: Path) -> None:
    folder = tmp_path / "flag"
    folder.mkdir()
    missing = a_hook("flag", path=str(tmp_path / "none" / "flag"), draining="present")
    wrong = a_hook("flag", path=str(folder), draining="absent")

    assert asyncio.run(missing.run(a_call())).verdict is Verdict.FAILED
    assert asyncio.run(wrong.run(a_call())).verdict is Verdict.FAILED
    assert asyncio.run(missing.check()) == [f"there is no directory {tmp_path / 'none'}"]
    assert asyncio.run(wrong.check()) == [f"{folder} is not a file"]


def test_a_file_too_large_to_be_put_back_stays(path: Path) -> None:
    path.write_bytes(b"x" * 70_000)

    outcome = asyncio.run(a_hook("flag", path=str(path), draining="absent").run(a_call()))

    assert outcome.verdict is Verdict.FAILED
    assert path.stat().st_size == 70_000


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    path.symlink_to(target)

    outcome = asyncio.run(a_hook("flag", path=str(path), draining="absent").run(a_call()))

    assert outcome.verdict is Verdict.FAILED
    assert target.read_text() == "precious"
    assert path.is_symlink()


def test_it_says_what_it_would_do() -> None:
    hook = a_hook("flag", path="/run/ok", draining="absent")

    assert hook.describe(Phase.PREPARE) == "remove /run/ok"
    assert hook.describe(Phase.UNDO) == "put /run/ok back as it was"
