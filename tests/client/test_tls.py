"""Both clients and a service over TLS that no one has vouched for (S16)."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from notbefore.certificates import provide
from notbefore.client import UnavailableError
from notbefore.clock import wall_clock
from tests.agent.hooks.answering import Asked, Reply, Service, answering
from tests.client.drivers import MakeDriver
from tests.client.flows import an_event


def a_document(_: Asked) -> Reply:
    return Reply(json={"DocumentIncarnation": 1, "Events": [an_event()]})


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Service]:
    """Its certificate is for its address, and in order, but of an authority that no one knows."""
    made = provide(tmp_path, names=["127.0.0.1"], now=wall_clock())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.certificate, made.key)
    with answering(a_document, tls) as service:
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
