"""Start-up files: what they add up to, and where they are wrong."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from forewarned.control.fleet.file import FleetFileError
from forewarned.control.startup.files import Startup, load_startup, startup_files
from forewarned.control.startup.steps import AddFault, Schedule
from forewarned.core.model import EventType

WEB = '[[vms]]\nname = "web"\n'
DB = '[[vms]]\nname = "db"\n'


def read(folder: Path, files: Mapping[str, str]) -> Startup:
    for name, text in files.items():
        (folder / name).write_text(text)
    return load_startup(startup_files(folder))


def mistakes(folder: Path, files: Mapping[str, str]) -> list[str]:
    with pytest.raises(FleetFileError) as refused:
        read(folder, files)
    return [line.removeprefix(f"{folder}/") for line in refused.value.mistakes]


def test_the_fleets_of_a_directory_are_one_fleet_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, {"20.toml": DB, "10.toml": WEB, "note.txt": "no file of ours"})

    assert found.plan is not None
    assert [vm.name for vm in found.plan.vms] == ["web", "db"]


def test_a_file_may_have_a_fleet_and_steps(tmp_path: Path) -> None:
    steps = '[[step]]\ndo = "schedule"\ntype = "Reboot"\nvms = ["web"]\n'
    fault = '[[step]]\ndo = "fault"\nstatus = 503\ntimes = 2\n'

    found = read(tmp_path, {"a.toml": WEB + steps, "b.toml": fault})

    assert found.plan is not None
    assert [each.steps for each in found.step_files] == [
        (Schedule(type=EventType.REBOOT, vms=("web",)),),
        (AddFault(status=503, times=2),),
    ]


def test_files_with_steps_alone_declare_no_fleet_and_an_empty_file_an_empty_one(
    tmp_path: Path,
) -> None:
    fail = '[[step]]\ndo = "fail"\nvm = "web"\n'

    assert read(tmp_path, {"a.toml": fail}).plan is None
    empty = read(tmp_path, {"b.toml": ""}).plan
    assert empty is not None
    assert empty.size() == 0


def test_every_mistake_of_every_file_is_told_at_its_line(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        {
            "10.toml": WEB + "sise = 3\n",
            "20.toml": DB + '\n[[step]]\ndo = "schedul"\n\n[[step]]\ndo = "fail"\n',
            "30.toml": "\n[[vms]\n",
        },
    )

    assert [line.split(" ")[0] for line in found] == [
        "20.toml:4:",
        "20.toml:7:",
        "30.toml:2:",
        "10.toml:3:",
    ]
    assert "did you mean schedule?" in found[0]
    assert "the field 'vm' is missing" in found[1]


def test_a_name_that_two_files_give_is_told_at_the_second(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, {"10.toml": WEB, "20.toml": f"# mine\n{WEB}"})

    assert told.startswith("20.toml:2: vms[0]: a VM named 'web' already exists")


def test_steps_in_two_files_of_one_name_are_refused_as_they_would_be_taken_at_every_start(
    tmp_path: Path,
) -> None:
    step = '[[step]]\ndo = "fail"\nvm = "web"\n'
    for folder in ("here", "there", "else"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fleet.toml").write_text(WEB if folder == "else" else step)
    here, there, fleet = (tmp_path / folder / "fleet.toml" for folder in ("here", "there", "else"))

    with pytest.raises(FleetFileError) as refused:
        load_startup([here, there, fleet])

    assert refused.value.mistakes == (
        f"{there}:1: step[0]: {here} has the same name and also has steps: rename one of the files",
    )
    assert len(load_startup([here, fleet]).step_files) == 1


def test_files_must_agree_on_what_a_fleet_has_once(tmp_path: Path) -> None:
    here, there = 'location = "here"\n', 'location = "there"\n'

    (told,) = mistakes(tmp_path, {"10.toml": here, "20.toml": here, "30.toml": there})

    assert told.startswith("30.toml:1: location:")
    assert '10.toml says "here"' in told


def test_a_place_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match="No such file"):
        load_startup(startup_files(tmp_path / "gone"))
