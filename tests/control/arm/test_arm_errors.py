"""What goes wrong has one shape, and no refusal is without its meaning."""

import logging
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from forewarned.control.arm import errors
from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import read
from forewarned.control.http import errors as control
from forewarned.core.errors import NotSpotError, RefusalError, UnknownResourceError
from forewarned.security.identities import (
    AccessError,
    Role,
    RoleTooLowError,
    TokensUnavailableError,
)
from tests.control.arm.asking import Asking, asking, refusal
from tests.control.error_types import errors_of


def test_every_category_has_a_code_of_azures() -> None:
    kinds = {*errors_of(RefusalError), *errors_of(control.RequestError), *errors_of(AccessError)}
    answers = [errors.answer(kind.__new__(kind), request_id="r") for kind in kinds]

    assert {int(each.status) for each in answers} <= {400, 401, 403, 404, 409, 413}


RAISED: list[Exception] = []


def fail(_: object, __: Asked) -> ArmAnswer:
    raise RAISED[0]


def look(_: object, __: Asked) -> ArmAnswer:
    return ArmAnswer()


@pytest.fixture
async def arm() -> AsyncIterator[Asking]:
    RAISED.clear()
    async with asking((read("/fail", fail), read("/look", look))) as asked:
        yield asked


@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (UnknownResourceError("web"), 404, "ResourceNotFound", "no VM is named 'web'"),
        (NotSpotError("web"), 409, "OperationNotAllowed", "not a Spot VM"),
        (control.BadRequestError("no such field"), 400, "InvalidRequestContent", "no such field"),
        (errors.resource_not_found("/a/b"), 404, "ResourceNotFound", "'/a/b' was not found"),
        (errors.invalid_parameter("sku", "none."), 400, "InvalidParameter", "none."),
        (errors.conflict("Conflict", "busy"), 409, "Conflict", "busy"),
        (TokensUnavailableError("no key"), 503, "ServiceUnavailable", "no key"),
        (
            RoleTooLowError("ada", needs=Role.ADMIN, has=Role.READER),
            403,
            "AuthorizationFailed",
            "admin",
        ),
    ],
)
async def test_each_kind_of_refusal_has_its_status_code_and_words(
    arm: Asking, error: Exception, status: int, code: str, message: str
) -> None:
    RAISED.append(error)

    told = await arm.refused("GET", "/fail")

    assert told[:2] == (status, code)
    assert message in told[2]


async def test_the_field_at_fault_is_the_target(arm: Asking) -> None:
    RAISED.append(errors.invalid_parameter("properties.sku", "no such size"))

    answer = (await arm.ask("GET", "/fail")).json()

    assert answer["error"]["target"] == "properties.sku"


async def test_headers_of_a_refusal_are_sent(arm: Asking) -> None:
    RAISED.append(
        ArmError(HTTPStatus.TOO_MANY_REQUESTS, "Throttled", "slowly", headers={"Retry-After": "9"})
    )

    response = await arm.ask("GET", "/fail")

    assert refusal(response) == (429, "Throttled", "slowly")
    assert response.headers["Retry-After"] == "9"


async def test_a_book_is_answered_with_a_page(arm: Asking) -> None:
    RAISED.append(errors.bad_request("InvalidParameter", "x" * 100_000))

    assert len((await arm.refused("GET", "/fail"))[2]) == 2000


async def test_a_store_that_is_down_is_503_with_when_to_come_again(arm: Asking) -> None:
    arm.steered.store.is_down = True

    response = await arm.ask("GET", "/look")

    assert refusal(response)[:2] == (503, "ServiceUnavailable")
    assert response.headers["Retry-After"] == "1"


async def test_a_fault_of_ours_is_500_with_an_id_that_finds_it_in_the_log(
    arm: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    RAISED.append(KeyError("a secret"))

    with caplog.at_level(logging.ERROR):
        response = await arm.ask("GET", "/fail")

    status, code, message = refusal(response)
    assert (status, code) == (500, "InternalServerError")
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    [line] = [each for each in caplog.records if each.name == errors.__name__]
    assert line.__dict__["request"] == response.headers["x-ms-request-id"]
    assert response.headers["x-ms-request-id"] in message
    assert line.exc_info is not None
