"""Who a request is from, and how much each may ask for."""

import json

import pytest

from forewarned.core.ids import ResourceName
from forewarned.metadata.http.limits import RateLimit
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.options import EmulatorAccess, Options
from forewarned.service.fleet.addresses import plain_address
from tests.builders import A, an_event
from tests.metadata.fakes import EVENTS, FakeDirectory, FakeService, Site, get, post, until

EMULATOR = Options(rate_limit=None, emulator=True)
ONE = f'{{"StartRequests":[{{"EventId":"{A}"}}]}}'


async def test_an_address_bound_to_no_vm_is_403_and_told_what_to_do(site: Site) -> None:
    answer = await site.get(address="127.0.0.9")

    assert answer.status == 403
    assert json.loads(answer.body) == {
        "error": "Address 127.0.0.9 is not bound to any VM: bind it to one in the fleet."
    }


async def test_an_approval_of_nobody_is_refused(service: FakeService, site: Site) -> None:
    service.publish(an_event())

    answer = await site.request(post(ONE), address="127.0.0.9")

    assert answer.status == 403
    assert service.approver.approved == []


@pytest.mark.parametrize(
    "header", ["X-Real-IP", "Forwarded", "X-Client-IP", "True-Client-IP", "X-Original-Host"]
)
async def test_no_header_says_who_is_calling(service: FakeService, site: Site, header: str) -> None:
    service.add("other", "127.0.0.2", "scope2")
    service.publish(an_event())

    answer = await site.request(get(**{header: "127.0.0.1"}), address="127.0.0.2")

    assert answer.body == b'{"DocumentIncarnation":1,"Events":[]}'


async def test_an_address_that_changes_hands_shows_nothing_of_its_former_vm(
    service: FakeService, site: Site
) -> None:
    service.publish(an_event())
    client = await site.connect()
    before = await client.get()

    service.directory.unbind("127.0.0.1")
    between = await client.get()
    service.add("vm9", "127.0.0.1", "scope9")
    after = await client.get()

    assert A in before.body.decode()
    assert between.status == 403
    assert after.body == b'{"DocumentIncarnation":1,"Events":[]}'


@pytest.mark.parametrize("vm", ["other", "OTHER", "Other"])
async def test_an_emulator_takes_the_path_at_its_word(service: FakeService, vm: str) -> None:
    service.add("other", "10.0.0.4", "scope2")
    service.publish(an_event(), scope="scope2")

    async with service.serving(EMULATOR) as site:
        read = await site.get(f"/vm/{vm}{EVENTS}")
        approved = await site.request(post(ONE, f"/vm/{vm}{EVENTS}"))
        own = await site.get()

    assert A in read.body.decode()
    assert approved.status == 200
    assert [caller.name for _, caller, _ in service.approver.approved] == ["other"]
    assert A not in own.body.decode()


async def test_an_emulator_gives_callers_without_a_vm_the_default_one(
    service: FakeService,
) -> None:
    service.add("other", "127.0.0.2", "scope2")
    service.publish(an_event())
    options = Options(rate_limit=None, emulator=True, default_vm="VM1")

    async with service.serving(options) as site:
        unbound = await site.get(address="127.0.0.9")
        bound = await site.get(address="127.0.0.2")

    assert A in unbound.body.decode()
    assert A not in bound.body.decode()


async def test_the_default_vm_is_the_fleets_first_also_for_a_connection_that_stays_open(
    service: FakeService,
) -> None:
    service.add("other", "127.0.0.2", "scope2")
    service.publish(an_event())
    options = Options(rate_limit=None, emulator=True)

    async with service.serving(options) as site:
        client = await site.connect("127.0.0.9")
        before = await client.get(EVENTS)
        service.directory.forget("vm1")
        after = await client.get(EVENTS)
        service.directory.forget("other")
        without = await client.get(EVENTS)

    assert A in before.body.decode()
    assert (after.status, A in after.body.decode()) == (200, False)
    assert without.status == 404
    assert "the fleet has no VMs" in json.loads(without.body)["error"]


@pytest.mark.parametrize(
    ("target", "default_vm", "status", "words"),
    [
        (f"/vm/ghost{EVENTS}", None, 404, "no VM is named 'ghost'"),
        (EVENTS, "ghost", 404, "the default VM 'ghost' is not in the fleet"),
    ],
)
async def test_an_emulator_says_how_to_be_a_vm(
    service: FakeService, target: str, default_vm: str | None, status: int, words: str
) -> None:
    options = Options(rate_limit=None, emulator=True, default_vm=default_vm)

    async with service.serving(options) as site:
        answer = await site.get(target, address="127.0.0.9")

    assert answer.status == status
    assert words in json.loads(answer.body)["error"]


@pytest.mark.parametrize(
    "path", ["/vm//metadata/versions", "/vm/a/b/metadata/versions", "/vm/a%2fb/metadata/versions"]
)
async def test_the_name_in_a_path_is_one_plain_name(service: FakeService, path: str) -> None:
    async with service.serving(EMULATOR) as site:
        assert (await site.get(path)).status == 404


def test_only_loopback_callers_of_an_emulator_may_choose() -> None:
    directory = FakeDirectory()
    directory.bind("vm1", "10.0.0.4", "scope1")
    options = Options(emulator=True, default_vm="vm1")
    identity = Identity(directory, options)
    stranger = Peer("10.0.0.5")
    insider = Peer("::1")

    assert identity.caller(stranger, "vm1") is None
    assert identity.caller(stranger, None) is None
    assert "loopback" in identity.refusal(stranger, "vm1").message
    assert identity.caller(insider, "vm1") == identity.caller(insider, None) is not None


def test_an_emulator_that_is_open_to_its_network_lets_callers_on_it_choose() -> None:
    directory = FakeDirectory()
    directory.bind("vm1", "10.0.0.4", "scope1")
    directory.bind("vm2", "10.0.0.5", "scope2")
    options = Options(
        emulator=True, emulator_access=EmulatorAccess.NETWORK, default_vm="vm1", host="0.0.0.0"
    )
    identity = Identity(directory, options)
    unknown, bound = Peer("172.18.0.3"), Peer("10.0.0.5")

    assert identity.caller(unknown, None) == directory.by_name("vm1")
    assert identity.caller(unknown, "vm2") == directory.by_name("vm2")
    assert identity.caller(bound, None) == directory.by_name("vm2")


def test_who_calls_the_listeners_own_address_from_it_is_on_this_machine() -> None:
    """Azure's address, put on the loopback device of a laptop."""
    directory = FakeDirectory()
    directory.bind("vm1", "10.0.0.4", "scope1")
    options = Options(host="169.254.169.254", emulator=True, default_vm="vm1")
    identity = Identity(directory, options)

    assert identity.caller(Peer("169.254.169.254"), None) is not None
    assert identity.caller(Peer("169.254.169.254"), "vm1") is not None
    assert identity.caller(Peer("169.254.0.7"), None) is None


def test_a_service_has_no_default_vm() -> None:
    directory = FakeDirectory()
    directory.bind("vm1", "10.0.0.4", "scope1")

    identity = Identity(directory, Options(emulator=False, default_vm="vm1"))

    assert identity.caller(Peer("127.0.0.1"), None) is None


@pytest.mark.parametrize("address", ["10.0.0.4", "::ffff:10.0.0.4", "::ffff:a00:4"])
def test_ipv4_in_ipv6_is_the_same_address(address: str) -> None:
    assert plain_address(address) == "10.0.0.4"


def test_the_zone_of_an_ipv6_address_is_no_part_of_who_it_is() -> None:
    assert plain_address("fe80::1%eth0") == "fe80::1"


# --- limits -----------------------------------------------------------------------------------


async def test_over_the_rate_is_429_for_that_vm_only(service: FakeService) -> None:
    service.add("vm2", "127.0.0.2", "scope1")

    async with service.serving(Options(rate_limit=5)) as site:
        greedy, modest = await site.connect("127.0.0.1"), await site.connect("127.0.0.2")
        for _ in range(20):
            burst = [await greedy.get() for _ in range(20)]
            other = await modest.get()
            service.stopwatch.seconds += 1

            assert [answer.status for answer in burst] == [200] * 5 + [429] * 15
            assert other.status == 200

    refused = burst[-1]
    assert refused.headers["Retry-After"] == "1"
    assert refused.body == b'{"error":"Too many requests. Slow down."}'


async def test_refused_requests_count_against_the_rate(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=5)) as site:
        client = await site.connect()
        statuses = [(await client.get("/x")).status for _ in range(6)]

    assert statuses == [404] * 5 + [429]


async def test_the_rate_is_the_vms_whatever_connection_it_uses(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=5)) as site:
        statuses = [(await site.get()).status for _ in range(6)]

    assert statuses == [200] * 5 + [429]


async def test_the_rate_and_the_document_are_those_of_whoever_has_the_address_now(
    service: FakeService,
) -> None:
    """I9: also on a connection that its former VM has left behind."""
    async with service.serving(Options(rate_limit=1)) as site:
        client = await site.connect()
        former = [await client.get() for _ in range(2)]
        service.add("vm9", "127.0.0.1", "scope9")
        service.publish(an_event(), scope="scope9")
        present = [await client.get() for _ in range(2)]

    assert [answer.status for answer in former + present] == [200, 429] * 2
    assert b'"Events":[]' in former[0].body
    assert b'"Events":[{' in present[0].body


async def test_one_vms_path_does_not_use_up_anothers_rate(service: FakeService) -> None:
    service.add("vm2", "127.0.0.2", "scope2")
    async with service.serving(Options(rate_limit=1, emulator=True)) as site:
        client = await site.connect()
        statuses = [
            (await client.get(path)).status
            for path in (EVENTS, f"/vm/vm2{EVENTS}", f"/vm/vm1{EVENTS}", f"/vm/vm2{EVENTS}")
        ]

    assert statuses == [200, 200, 429, 429]


def test_a_steady_poller_is_never_throttled() -> None:
    limit = RateLimit(5)

    bucket = limit.bucket(ResourceName("vm1"))
    waits = [limit.take(bucket, 0.1 + number * 0.2) for number in range(10_000)]

    assert waits == [0] * 10_000


def test_a_rate_below_one_a_second_still_lets_one_through() -> None:
    limit = RateLimit(0.5)
    bucket = limit.bucket(ResourceName("vm1"))

    assert limit.take(bucket, 0) == 0
    assert limit.take(bucket, 1) == pytest.approx(1)
    assert limit.take(bucket, 2) == 0


@pytest.mark.parametrize(("now", "kept"), [(59, 5001), (100, 1)])
def test_buckets_are_forgotten_that_have_long_been_full(now: float, kept: int) -> None:
    limit = RateLimit(5)
    for number in range(5000):
        limit.take(limit.bucket(ResourceName(f"vm{number}")), 0)
    limit.take(limit.bucket(ResourceName("late")), 50)

    limit.prune(now)

    assert len(limit._buckets) == kept
    assert "late" in limit._buckets


def test_whoever_holds_on_to_a_forgotten_bucket_takes_from_the_new_one() -> None:
    limit = RateLimit(1)
    waiting_request = limit.bucket(ResourceName("vm1"))
    limit.take(waiting_request, 0)
    for number in range(5000):
        limit.bucket(ResourceName(f"other{number}"))
    limit.prune(100)
    anew = limit.bucket(ResourceName("vm1"))

    assert anew is not waiting_request
    assert limit.take(anew, 200) == 0
    assert limit.take(waiting_request, 200) == pytest.approx(1)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        Options(rate_limit=rate)


async def test_a_vm_has_so_many_connections_and_its_neighbours_theirs(
    service: FakeService,
) -> None:
    service.add("vm2", "127.0.0.2", "scope1")
    options = Options(rate_limit=None, max_connections_per_vm=2)

    async with service.serving(options) as site:
        first = [await site.connect() for _ in range(2)]
        [(await client.get()) for client in first]
        refused = await (await site.connect()).receive()
        neighbour = await site.get(address="127.0.0.2")
        first[0].writer.close()
        await until(lambda: site.server.connections == 2)
        again = await site.get()

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert neighbour.status == 200
    assert again.status == 200


async def test_a_listener_has_so_many_connections(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=None, max_connections=1)) as site:
        first = await site.connect()
        await first.get()
        refused = await (await site.connect()).receive()
        kept = await first.get()

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert kept.status == 200


async def test_in_an_emulator_one_address_may_be_many_vms(service: FakeService) -> None:
    options = Options(rate_limit=None, emulator=True, default_vm="vm1", max_connections_per_vm=1)

    async with service.serving(options) as site:
        answers = [await site.get(address="127.0.0.9") for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 200]
