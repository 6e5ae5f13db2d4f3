"""The site: every page is in its navigation, every link goes somewhere, and the API is all there."""

import re
import unicodedata
from pathlib import Path
from typing import Final

import pytest

import forewarned.client
import forewarned.testing
from tests.docs.pages import DOCS, PAGES, ROOT, prose

MKDOCS: Final = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
_LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_HEADING: Final = re.compile(r"^#+ +(.*?)(?: +\{#([\w-]+)\})?$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """As mkdocs makes them: words of the heading, and a number after the second of its kind."""
    made: set[str] = set()
    for title, own in _HEADING.findall(prose(PAGES[page])):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        letters = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        slug = own or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", letters).strip().lower())
        number = 0
        while (each := f"{slug}_{number}" if number else slug) in made:
            number += 1
        made.add(each)
    return made


@pytest.mark.parametrize("page", PAGES)
def test_every_link_goes_somewhere(page: str) -> None:
    lost = []
    for found in _LINK.finditer(prose(PAGES[page])):
        target, anchor = found["target"], found["anchor"]
        if re.match(r"\w+:", target):
            continue
        path = (DOCS / page).parent / target if target else DOCS / page
        name = str(path.resolve().relative_to(DOCS)) if path.resolve().is_relative_to(DOCS) else ""
        is_there = path.exists() and bool(name)
        # What mkdocstrings makes of code has anchors of its own: `make docs` checks these.
        is_markdown = name in PAGES and not str(anchor).startswith("forewarned.")
        if not is_there or (anchor and is_markdown and anchor not in anchors(name)):
            lost.append(found[0])

    assert lost == []


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", MKDOCS, re.MULTILINE)

    assert sorted(listed) == sorted(page for page in PAGES if not page.startswith("decisions/0"))


def test_every_decision_is_in_the_list_of_decisions() -> None:
    missing = [
        name
        for page in PAGES
        if page.startswith("decisions/0")
        if f"({(name := Path(page).name)})" not in PAGES["decisions/README.md"]
    ]

    assert missing == []


@pytest.mark.parametrize("package", [forewarned.client, forewarned.testing])
def test_every_public_name_is_in_the_reference(package: object) -> None:
    module = getattr(package, "__name__", "")
    shown = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", PAGES["python-api.md"], re.MULTILINE)

    assert sorted(shown) == sorted(getattr(package, "__all__", ()))
