"""Which addresses requests of others may go to, in all the forms that an address has."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop

from forewarned.targets.addresses import Reach, permitted, refusal
from forewarned.targets.errors import TargetError

PUBLIC = ["20.50.2.1", "8.8.8.8", "2603:1020::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
LOOPBACK = ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "2002:7f00:1::"]
PRIVATE = [
    "10.0.0.1",
    "172.31.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "fd12::1",
    "fec0::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "64:ff9b:1::a00:1",
    "64:ff9b:1:a00:0:100::",
    "2002:a00:1::",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]
NEVER = [
    "169.254.169.254",
    "169.254.1.1",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:2:3:4:a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1:12a9:fe:a9fe::",
    "64:ff9b:1:1234:a9:fea9:fe00:0",
    "64:ff9b:1::a83f:8110",
    "2002:a9fe:a9fe::",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "fe80::1",
    "fe80::1%eth0",
    "0.0.0.0",
    "::",
    "0.1.2.3",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "240.0.0.1",
    "4000::1",
    "100::1",
    "nowhere",
]


@pytest.mark.parametrize(
    ("addresses", "reaches"),
    [
        (PUBLIC, set(Reach)),
        (LOOPBACK, {Reach.LOOPBACK, Reach.PRIVATE}),
        (PRIVATE, {Reach.PRIVATE}),
        (NEVER, set()),
    ],
)
def test_each_address_may_be_reached_from_where_it_belongs(
    addresses: list[str], reaches: set[Reach]
) -> None:
    """S1, in the other direction."""
    for address in addresses:
        assert {reach for reach in Reach if refusal(address, reach) is None} == reaches, address


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost"])
async def test_other_spellings_of_an_address_are_seen_through(host: str) -> None:
    with pytest.raises(TargetError, match="is an address of this machine"):
        await permitted(host, 80, reach=Reach.PUBLIC)


async def test_a_host_without_an_address_is_refused() -> None:
    async def nothing(_host: str, _port: int) -> list[str]:
        return []

    with pytest.raises(TargetError, match="is not allowed as a target: it has no address"):
        await permitted("empty.example", 80, reach=Reach.PRIVATE, resolve=nothing)


def test_a_name_that_takes_long_to_resolve_keeps_no_thread_from_other_work() -> None:
    """On the loop of servers, whose threads for other work do none here."""

    async def resolve() -> None:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        asyncio.get_running_loop().set_default_executor(executor)
        with pytest.raises(RuntimeError, match="after shutdown"):
            await asyncio.to_thread(int)

        with pytest.raises(TargetError, match="is an address of this machine"):
            await permitted("localhost", 80, reach=Reach.PUBLIC)

    uvloop.run(resolve())
