"""The documentation names every page."""

import re
from pathlib import Path

from forewarned.console.action_forms import ACTION_FORMS
from forewarned.console.app import PAGES, SIGN_IN_PAGES

DOCS = Path(__file__).parents[2] / "docs" / "console.md"


def test_every_page_is_in_the_documentation() -> None:
    text = DOCS.read_text()
    pages = [(method, path) for method, path, _, _ in PAGES]
    pages += [(method, path) for method, path, _ in SIGN_IN_PAGES]
    shown = {path.split("/")[1].partition(".")[0] for method, path in pages if method == "GET"}

    missing = {word for word in shown if f"`/{word}" not in text}

    assert missing == set()


def test_every_action_is_in_the_documentation() -> None:
    text = DOCS.read_text().lower()
    verbs = {re.split(r"[ -]", action.key)[0] for action in ACTION_FORMS}

    assert {verb for verb in verbs if verb not in text} == set()
