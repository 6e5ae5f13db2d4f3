import pytest

from forewarned.core.errors import NotOwnResourceError, RefusalError, UnknownEventError
from forewarned.feed.protocol import Refused
from forewarned.feed.refusals import rebuilt, refused
from forewarned.service.errors import RealClockError


@pytest.mark.parametrize(
    "refusal",
    [UnknownEventError("A"), NotOwnResourceError("B"), RealClockError(), RefusalError("no")],
)
def test_a_refusal_arrives_as_the_same_type_and_in_the_same_words(refusal: RefusalError) -> None:
    arrived = rebuilt(refused(1, refusal))

    assert type(arrived) is type(refusal)
    assert str(arrived) == str(refusal)


def test_a_refusal_of_a_type_nobody_knows_is_a_refusal_all_the_same() -> None:
    arrived = rebuilt(Refused(1, "NoSuchError", "not today"))

    assert type(arrived) is RefusalError
    assert str(arrived) == "not today"
