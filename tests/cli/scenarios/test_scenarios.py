"""`forewarned scenario check`, and what `run` refuses without asking a server."""

from pathlib import Path

import pytest

from forewarned.cli.scenarios.adaptation import playable, renamed
from forewarned.scenarios import steps
from forewarned.scenarios.file import parse
from tests.cli.served import invoke

GOOD = """
name = "good"
title = "Good"

[[step]]
do = "schedule"
name = "reboot"
type = "Reboot"
vms = ["vm"]

[[expect]]
that = "approved"
event = "reboot"
within = "5s"
"""


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_check_says_what_is_in_good_files(tmp_path: Path) -> None:
    good = written(tmp_path, "good.toml", GOOD)

    done = invoke("scenario", "check", good)

    assert (done.exit_code, done.output) == (0, f"{good}: good, 1 step, 1 expectation: ok\n")


def test_check_reports_every_mistake_of_every_file(tmp_path: Path) -> None:
    good = written(tmp_path, "good.toml", GOOD)
    bad = written(tmp_path, "bad.toml", GOOD.replace("Reboot", "Rebot").replace("good", "no no"))

    done = invoke("scenario", "check", bad, good, str(tmp_path / "none.toml"))

    assert done.exit_code == 1
    assert f"{good}: good" in done.output
    assert f"{bad}:2: name: expected a name of up to 64 letters" in done.output
    assert f"{bad}:8: step[0].type: expected Freeze" in done.output
    assert "none.toml: No such file or directory" in done.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[step]]\ndo = "kill_handler"\n', "scenario good starts or ends the handler"),
        ("", "expects nothing that can be seen from outside the handler"),
    ],
)
def test_run_refuses_what_people_would_have_to_do(tmp_path: Path, more: str, message: str) -> None:
    text = f'name = "good"\ntitle = "Good"\n{more}[[expect]]\nthat = "running"\n'

    done = invoke("scenario", "run", written(tmp_path, "it.toml", text))

    assert done.exit_code == 2
    assert message in done.output


def test_run_says_where_the_mistakes_are(tmp_path: Path) -> None:
    done = invoke("scenario", "run", written(tmp_path, "it.toml", "x = 1"))

    assert done.exit_code == 2
    assert "it.toml:1: x: there is no such field" in done.output


def test_what_can_not_be_seen_is_left_out_and_named() -> None:
    scenario = parse(f'{GOOD}\n[[expect]]\nthat = "running"\n')

    seen, unseen = playable(scenario)

    assert len(seen.expectations) == 1
    assert unseen == ["the handler keeps running"]


def test_another_vm_takes_the_place_of_the_handlers_own_everywhere() -> None:
    other = renamed(parse(GOOD), "web")

    [step] = other.steps
    assert isinstance(step, steps.Schedule)
    assert (other.handler_vm, other.fleet[0].name, step.vms) == ("web", "web", ("web",))
