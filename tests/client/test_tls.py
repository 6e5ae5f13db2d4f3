"""Both clients and a service over TLS that no one has vouched for (S16)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarned.client import UnavailableError
from tests.agent.hooks.http_service import Asked, Reply, Service, answering, of_its_own_authority
from tests.client.drivers import MakeDriver
from tests.client.flows import an_event


def a_document(_: Asked) -> Reply:
    return Reply(json={"DocumentIncarnation": 1, "Events": [an_event()]})


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Service]:
    with answering(a_document, of_its_own_authority(tmp_path)) as service:
        yield service


def test_nothing_is_asked_of_a_service_whose_certificate_no_one_has_signed(
    client: MakeDriver, stranger: Service
) -> None:
    """S16: what answers there may be anybody, and would be told when this VM is ready."""
    with (
        client(stranger.url) as events,
        pytest.raises(UnavailableError, match="certificate verify failed"),
    ):
        next(iter(events.watch(patience=0)))

    assert stranger.asked == []
