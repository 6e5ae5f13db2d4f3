"""Walking through a list by nextLink, while it stays and while it changes."""

import base64
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forewarned.control.arm import requests
from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.paging import PAGE, page
from forewarned.control.arm.requests import Asked
from forewarned.core.model import Actor
from tests.control.arm.asking import CONTEXT, ROOT

PATH: Final = "/subscriptions/s/providers/Microsoft.Compute/virtualMachines"
NAMES = st.lists(st.text(st.characters(codec="utf-8")), unique=True, max_size=40)


def asked(**query: str) -> Asked:
    return Asked(
        path={},
        query={"api-version": "2024-11-01", **query},
        body=None,
        by=Actor(name="ada"),
        root=ROOT,
        url=PATH,
        api_version="2024-11-01",
        context=CONTEXT,
    )


def listed(names: list[str], by: Asked) -> dict[str, Any]:  # as a client sees it
    return page(names, by, key=lambda name: name, show=lambda name: {"name": name})


def followed(link: str) -> Asked:
    """What a client asks that follows a link as it is."""
    there = urlsplit(link)
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{ROOT}{PATH}"
    return asked(**requests.query(there.query.encode("ascii")))


@given(NAMES, st.integers(1, 10))
def test_all_pages_together_are_the_list_in_order(names: list[str], size: int) -> None:
    pages = [listed(names, asked(**{"$top": str(size), "$filter": "a eq 'ü&?'"}))]
    while "nextLink" in pages[-1]:
        by = followed(pages[-1]["nextLink"])
        assert by.query["$filter"] == "a eq 'ü&?'"
        pages.append(listed(names, by))

    shown = [item["name"] for each in pages for item in each["value"]]
    assert shown == sorted(names)
    assert all(len(each["value"]) == size for each in pages[:-1])


@given(NAMES, NAMES, st.integers(1, 5))
def test_what_stays_is_shown_once_whatever_comes_and_goes_between_pages(
    before: list[str], after: list[str], size: int
) -> None:
    first = listed(before, asked(**{"$top": str(size)}))
    shown = [item["name"] for item in first["value"]]
    link = first.get("nextLink")
    while link is not None:
        more = listed(after, followed(link))
        shown += [item["name"] for item in more["value"]]
        link = more.get("nextLink")

    assert len(shown) == len(set(shown))
    if len(before) > size:
        assert set(before) & set(after) <= set(shown)


def test_a_page_has_250_at_most() -> None:
    names = [f"vm{number:04}" for number in range(PAGE + 1)]

    assert len(listed(names, asked())["value"]) == 250
    assert len(listed(names, asked(**{"$top": "100000"}))["value"]) == 250
    assert "nextLink" not in listed(names[:PAGE], asked())


@pytest.mark.parametrize("top", ["0", "-1", "", "ten", "1.5", "٣", "9" * 5000])
def test_a_size_that_is_none_is_refused(top: str) -> None:
    with pytest.raises(ArmError) as refused:
        listed(["a"], asked(**{"$top": top}))

    assert (refused.value.status, refused.value.target) == (400, "$top")


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_a_token_that_was_never_given_out_is_refused(token: str) -> None:
    assume("MTo" not in token)

    with pytest.raises(ArmError) as refused:
        listed(["a", "b"], asked(**{"$skiptoken": token}))

    assert (refused.value.status, refused.value.code) == (400, "InvalidSkipToken")


@pytest.mark.parametrize("token", ["", "x", "MTo", "é", "////", "Mjp4", "MTp4\n"])
def test_a_broken_token_is_refused(token: str) -> None:
    with pytest.raises(ArmError, match="not issued by this server"):
        listed(["a"], asked(**{"$skiptoken": token}))
