"""What docs/releases.md promises to keep."""

import re
from pathlib import Path

import pytest

import forewarned
from tests.public_surface import surface

ROOT = Path(__file__).resolve().parents[1]
PINNED = Path(__file__).with_name("public_surface.txt")


def test_public_names_and_their_arguments_are_those_that_were_promised() -> None:
    pinned = PINNED.read_text(encoding="utf-8").splitlines()

    found = list(surface())

    assert found == pinned, (
        "the public API differs from tests/public_surface.txt. If docs/releases.md allows the"
        " change, write the file anew: .venv/bin/python -m tests.public_surface"
    )


@pytest.mark.parametrize("package", ["forewarned.client", "forewarned.testing"])
def test_the_page_names_each_public_package(package: str) -> None:
    assert f"`{package}`" in (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")


def test_the_version_is_of_the_form_that_the_page_promises() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", forewarned.__version__)
