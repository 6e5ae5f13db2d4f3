import json
import os
from pathlib import Path

import pytest

from forewarned.runtime.ready_file import ReadyFile, ReadyFileError

FACTS = {"metadata": "http://127.0.0.1:1", "arm": None}


def test_it_is_there_from_when_it_is_written_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    file = ReadyFile(path)

    with file.present():
        assert not path.exists()
        file.write(FACTS)
        assert json.loads(path.read_text()) == {"pid": os.getpid(), **FACTS}

    assert list(tmp_path.iterdir()) == []


def test_one_that_a_killed_server_left_is_gone_before_the_next_one_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text('{"pid": 1, "metadata": "http://127.0.0.1:9"}')

    with ReadyFile(path).present():
        assert not path.exists()


def test_an_empty_one_as_mktemp_makes_them_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "tmp.x1"
    path.touch()
    file = ReadyFile(path)

    with file.present():
        assert not path.exists()
        file.write(FACTS)
        assert json.loads(path.read_text())["metadata"] == FACTS["metadata"]


@pytest.mark.parametrize("content", ["[1]", '{"vms": []}', "not JSON"])
def test_a_file_that_is_somebody_elses_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(content)

    with pytest.raises(ReadyFileError, match="is not a ready file"), ReadyFile(path).present():
        pass

    assert path.read_text() == content


def test_that_of_another_server_outlives_this_one(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    file = ReadyFile(path)

    with file.present():
        file.write(FACTS)
        path.write_text('{"pid": 1}')

    assert path.read_text() == '{"pid": 1}'


def test_a_place_that_can_not_be_written_to_is_told_before_anything_is_served(
    tmp_path: Path,
) -> None:
    path = tmp_path / "missing" / "ready.json"

    with (
        pytest.raises(ReadyFileError, match=r"can't write .*ready.json \(No such file"),
        ReadyFile(path).present(),
    ):
        pass
