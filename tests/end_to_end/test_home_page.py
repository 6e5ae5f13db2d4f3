"""The quick starts of docs/index.md with a server, typed as they stand there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import Block, blocks
from tests.end_to_end.server_process import environment, serving

HOME: Final = [block for block in blocks() if block.page == "index.md"]
PAGE: Final = Path(__file__).parents[2] / "docs" / "index.md"


def section(heading: str) -> list[Block]:
    text = PAGE.read_text(encoding="utf-8")
    begin = text[: text.index(f"\n## {heading}\n")].count("\n")
    end = begin + text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].count("\n")
    return [each for each in HOME if each.language == "sh" and begin < each.line <= end + 2]


def typed(lines: str, folder: Path, **variables: str) -> str:
    # What a clone needs to be set up is set up already, and `serve` runs beside.
    lines = re.sub(r"^(make venv && )?\. \.venv/bin/activate$", "", lines, flags=re.MULTILINE)
    program = f'forewarned() {{ {sys.executable} -m forewarned "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-eu", "-c", program + lines],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{lines}{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.thorough
def test_a_developer_sees_a_reboot_from_its_notice_to_its_end(tmp_path: Path) -> None:
    lines = "".join(block.text for block in section("For application developers"))

    with serving(tmp_path, "--clock", "1x") as server:
        printed = typed(
            lines.replace("127.0.0.1:8169", server.metadata),
            tmp_path,
            FOREWARNED_CONTROL=f"http://{server.control}",
        )

    assert "Reboot completed" in printed


@pytest.mark.thorough
def test_an_operator_of_a_private_cloud_carries_out_a_reboot(tmp_path: Path) -> None:
    set_up, serve, *rest = [each.text for each in section("For operators of a private cloud")]
    assert serve.startswith("forewarned serve --config forewarned.toml --fleet fleet.toml --data ")

    typed(set_up, tmp_path)
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet.read_text().replace('"10.0.0.10"', '"127.0.0.1"'))
    flags = (
        "--config",
        str(tmp_path / "forewarned.toml"),
        "--fleet",
        str(fleet),
        "--clock",
        "real",
    )
    with serving(tmp_path, *flags) as server:
        lines = "".join(rest).replace("127.0.0.1:8169", server.metadata)
        # Warnings are no reason to stop here: an address on loopback is what this is about.
        lines = re.sub(r"^(forewarned doctor .*)$", r"\1 || true", lines, flags=re.MULTILINE)
        printed = typed(
            lines.replace("--data state", f"--data {server.data}"),
            tmp_path,
            FOREWARNED_CONTROL=f"http://{server.control}",
        )

    assert '"Events":[]' in printed
    assert re.search(r"waits for\s+approval", printed)
    assert "Reboot completed" in printed
