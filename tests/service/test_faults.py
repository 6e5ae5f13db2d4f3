from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.errors import (
    BadFaultError,
    FaultsForbiddenError,
    TooManyFaultsError,
    UnknownFaultError,
)
from forewarned.service.faults import MOST, Fault, FaultKind, FaultMethod, Faults

WEB, DB = ResourceName("web"), ResourceName("db")
GET, POST = FaultMethod.GET, FaultMethod.POST
BROKEN = Fault(kind=FaultKind.STATUS, status=500)
SECOND = timedelta(seconds=1)

pytestmark = pytest.mark.anyio


async def test_a_fault_happens_as_often_as_it_is_to_and_no_more() -> None:
    faults = Faults()
    added = faults.add(replace(BROKEN, times=2)).fault

    taken = [await faults.take(WEB, GET) for _ in range(3)]

    assert taken == [added, added, None]
    [record] = faults.show()
    assert (record.used, record.is_used_up) == (2, True)
    assert faults.active == ()


async def test_without_a_number_it_happens_until_it_is_removed() -> None:
    faults = Faults()
    added = faults.add(BROKEN).fault

    assert [await faults.take(WEB, GET) for _ in range(9)] == [added] * 9
    assert faults.remove(added.id).used == 9
    assert await faults.take(WEB, GET) is None


async def test_of_several_that_fit_the_oldest_happens() -> None:
    faults = Faults()
    first = faults.add(replace(BROKEN, times=1)).fault
    second = faults.add(replace(BROKEN, status=410)).fault

    assert [await faults.take(WEB, GET) for _ in range(2)] == [first, second]


@pytest.mark.parametrize(
    ("narrowed", "hit", "missed"),
    [
        (replace(BROKEN, vm=ResourceName("WEB")), (WEB, GET), (DB, GET)),
        (replace(BROKEN, method=POST), (WEB, POST), (WEB, GET)),
        (Fault(kind=FaultKind.STALE), (WEB, GET), (WEB, POST)),
    ],
    ids=["by VM", "by method", "stale"],
)
async def test_a_fault_is_for_those_it_names(
    narrowed: Fault, hit: tuple[ResourceName, FaultMethod], missed: tuple[ResourceName, FaultMethod]
) -> None:
    faults = Faults()
    faults.add(narrowed)

    assert await faults.take(*missed) is None
    assert await faults.take(*hit) is not None


async def test_watchers_hear_of_every_list_of_what_may_still_happen() -> None:
    heard: list[list[str]] = []
    faults = Faults()
    faults.watch(lambda active: heard.append([fault.id for fault in active]))

    faults.add(replace(BROKEN, times=1))
    faults.add(BROKEN)
    await faults.take(WEB, GET)
    faults.remove("1")
    faults.clear()
    faults.clear()

    assert heard == [["1"], ["1", "2"], ["2"], []]


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        (replace(BROKEN, status=None), "status"),
        (replace(BROKEN, status=399), "status"),
        (replace(BROKEN, status=600), "status"),
        (Fault(kind=FaultKind.RESET, status=500), "status"),
        (Fault(kind=FaultKind.RESET, retry_after=SECOND), "retry_after"),
        (replace(BROKEN, retry_after=SECOND / 2), "retry_after"),
        (Fault(kind=FaultKind.DELAY), "delay"),
        (Fault(kind=FaultKind.DELAY, delay=timedelta(0)), "delay"),
        (Fault(kind=FaultKind.EMPTY, delay=timedelta(minutes=11)), "delay"),
        (replace(BROKEN, times=0), "times"),
        (Fault(kind=FaultKind.STALE, method=POST), "method"),
    ],
)
async def test_a_fault_that_makes_no_sense_is_refused_and_changes_nothing(
    fault: Fault, field: str
) -> None:
    faults = Faults()

    with pytest.raises(BadFaultError) as refusal:
        faults.add(fault)

    assert refusal.value.field == field
    assert faults.show() == ()


async def test_too_many_requests_come_with_a_time_to_try_again() -> None:
    faults = Faults()

    assert faults.add(replace(BROKEN, status=429)).fault.retry_after == SECOND
    assert faults.add(replace(BROKEN, status=503)).fault.retry_after is None


async def test_a_server_for_real_vms_makes_no_faults() -> None:
    with pytest.raises(FaultsForbiddenError, match="emulator"):
        Faults(allowed=False).add(BROKEN)


async def test_there_are_not_more_than_can_be_looked_through() -> None:
    faults = Faults()
    for _ in range(MOST):
        faults.add(BROKEN)

    with pytest.raises(TooManyFaultsError):
        faults.add(BROKEN)

    assert len(faults.show()) == MOST


async def test_a_fault_that_is_not_there_is_not_removed() -> None:
    with pytest.raises(UnknownFaultError):
        Faults().remove("1")
