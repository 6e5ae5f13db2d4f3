"""What the pollers of az and the SDKs need: an answer that is not final says where to look."""

from typing import Final

import pytest

from forewarned.control.arm import answers
from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.arm.requests import Asked
from forewarned.core.model import Actor
from forewarned.service.records import OperationRecord
from tests.builders import NOON
from tests.control.arm.asking import CONTEXT, ROOT

RECORD: Final = OperationRecord(
    id="op 1", path="/subscriptions/S", action="restart", started_at=NOON
)
ASKED: Final = Asked(
    path={"subscription": "S x"},
    query={},
    body=None,
    by=Actor(name="ada"),
    root=ROOT,
    url="/subscriptions/S",
    api_version="2024-11-01",
    context=CONTEXT,
)
URL: Final = (
    f"{ROOT}/subscriptions/S%20x/providers/Microsoft.Compute/locations/local/operations/op%201"
    "?api-version=2024-11-01"
)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (answers.created({"name": "a"}, RECORD, ASKED), 201),
        (answers.updated({"name": "a"}, RECORD, ASKED), 200),
    ],
)
def test_a_put_is_answered_with_the_resource_and_where_its_operation_is(
    answer: ArmAnswer, status: int
) -> None:
    assert answer.status == status
    assert answer.content() == b'{"name":"a"}'
    assert answer.headers == {"Azure-AsyncOperation": URL, "Retry-After": "1"}


def test_a_put_with_nothing_to_wait_for_is_final() -> None:
    assert answers.created({}, None, ASKED).headers == {}
    assert answers.updated({}, None, ASKED).headers == {}


def test_a_post_or_delete_is_accepted_with_both_places_to_look_at() -> None:
    answer = answers.accepted(RECORD, ASKED)

    assert (answer.status, answer.content()) == (202, b"")
    assert answer.headers == {
        "Azure-AsyncOperation": URL,
        "Location": f"{URL}&monitor=true",
        "Retry-After": "1",
    }


def test_what_is_still_running_says_when_to_look_again() -> None:
    running = answers.still_running("op 1", ASKED)
    status = answers.in_progress({"status": "InProgress"})

    assert running.status == 202
    assert running.headers == {"Location": f"{URL}&monitor=true", "Retry-After": "1"}
    assert (status.status, status.headers) == (200, {"Retry-After": "1"})


def test_when_to_look_again_is_a_whole_number_of_at_least_one() -> None:
    """0 counts as absent (30 s between looks), and a fraction makes the SDKs fail."""
    assert int(answers.RETRY_AFTER) >= 1


def test_what_is_final_has_no_place_to_look_at() -> None:
    for answer in (answers.ok({}), answers.finished(), answers.no_content()):
        assert answer.headers == {}
    assert answers.finished().status == 200
    assert answers.no_content().status == 204
    assert answers.multi_status([]).status == 207
