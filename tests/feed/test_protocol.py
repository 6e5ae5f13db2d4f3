from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Scope
from forewarned.feed.frames import FeedBrokenError
from forewarned.feed.protocol import (
    AboutVm,
    Activate,
    Approve,
    AskAbout,
    AskReadiness,
    ClockSet,
    Committed,
    Counted,
    Failed,
    FaultsSet,
    FaultTaken,
    FirstVm,
    Fresh,
    FromPoller,
    FromWriter,
    Granted,
    Hello,
    Observed,
    Pages,
    Places,
    Refused,
    ReportReadiness,
    Reports,
    Seen,
    SnapshotEnd,
    Sync,
    Synced,
    TakeFault,
    Unavailable,
    Watched,
    decode_from_poller,
    decode_from_writer,
    encode,
)
from forewarned.service.azure.equipment import Equipment, Image, Interface
from forewarned.service.faults import Fault, FaultKind, FaultMethod
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import About, Caller, PageContent, Place, Saved, ScopePlaces
from forewarned.service.requests.watch import SeenRequest
from tests.builders import MINUTE, NOON, A, a_binding, a_resource, a_scope, an_event
from tests.storage.strategies import scopes

PAGE = PageContent.of(Saved(scope=a_scope(an_event(A, duration=9 * MINUTE)), revision=4))
PLACE = Place.of(a_binding())
CALLER = Caller(name=ResourceName("vm1"), scope_id=ScopeId("scope1"))
EQUIPMENT = Equipment(
    image=Image(publisher="p", offer="o", sku="s", version="1.0.0"),
    interfaces=(Interface(mac_address="000D3A080004", private_address="127.8.0.4"),),
)
ABOUT = About(a_binding(), a_resource(terminate_notice=5 * MINUTE), EQUIPMENT)
FAULT = Fault(id="1", kind=FaultKind.STATUS, status=429, retry_after=MINUTE, times=2)
REPORT = ReadinessReport(resource=ResourceName("vm1"), standing=Standing.READY, heard_at=NOON)

FROM_WRITER = [
    Hello(1, "1.2.3", 7),
    ClockSet(NOON, 60.0),
    Pages([PAGE]),
    Places([ScopePlaces(PLACE.scope_id, [PLACE.name], [PLACE.address])]),
    SnapshotEnd(),
    Fresh(123_456_789_012_345),
    Committed(8, [PAGE], [PLACE], [ResourceName("vm2")]),
    Committed(9, first_vm=ResourceName("vm1")),
    FirstVm(ResourceName("vm1")),
    FirstVm(None),
    Sync(3),
    Granted(1),
    Refused(2, "UnknownEventError", "event A was not found"),
    Unavailable(3),
    Failed(4),
    AboutVm(5, ABOUT),
    AboutVm(6, None),
    Watched(True),
    FaultsSet([FAULT]),
    FaultTaken(7, FAULT),
    FaultTaken(8, None),
    Reports(9, [REPORT]),
    Reports(10, []),
]
FROM_POLLER = [
    Approve(1, [A], CALLER, "10.0.0.1"),
    Activate(2, CALLER, "10.0.0.1"),
    AskAbout(3, ResourceName("vm1")),
    TakeFault(4, ResourceName("vm1"), FaultMethod.POST),
    ReportReadiness(5, A, Standing.REFUSES, CALLER),
    AskReadiness(6, A, CALLER),
    Seen({ScopeId("scope1"): ResourceName("vm1")}),
    Counted({"polls": 12}),
    Observed(SeenRequest(vm=None, asks="events", headers=(("a", "b"),), body=b"\xff", status=None)),
    Synced(3),
]


@pytest.mark.parametrize("message", FROM_WRITER)
def test_a_poller_reads_what_the_writer_wrote(message: FromWriter) -> None:
    assert decode_from_writer(encode(message)) == message


@pytest.mark.parametrize("message", FROM_POLLER)
def test_the_writer_reads_what_a_poller_wrote(message: FromPoller) -> None:
    assert decode_from_poller(encode(message)) == message


def test_no_message_is_left_out_above() -> None:
    assert {type(message) for message in FROM_WRITER} == set(get_args(FromWriter))
    assert {type(message) for message in FROM_POLLER} == set(get_args(FromPoller))


# Whole scopes take a while to make up, on a machine that is busy.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(scopes)
def test_a_document_arrives_as_it_was_sent(scope: Scope) -> None:
    """I25."""
    page = PageContent.of(Saved(scope=scope, revision=1))

    received = decode_from_writer(encode(Pages([page])))

    assert received == Pages([page])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"nonsense",
        msgspec.msgpack.encode(["NoSuchMessage", 1]),
        msgspec.msgpack.encode(["Sync", "three"]),
        msgspec.msgpack.encode({"Sync": 3}),
        b"\x92\xa4Sync",
        b"\x93\xa7Refused\x01\xa2\xff\xff",
    ],
)
def test_what_is_no_message_breaks_the_feed(payload: bytes) -> None:
    with pytest.raises(FeedBrokenError):
        decode_from_writer(payload)
    with pytest.raises(FeedBrokenError):
        decode_from_poller(payload)


def test_neither_end_takes_the_other_ends_messages() -> None:
    with pytest.raises(FeedBrokenError):
        decode_from_writer(encode(Synced(1)))
    with pytest.raises(FeedBrokenError):
        decode_from_poller(encode(Sync(1)))
