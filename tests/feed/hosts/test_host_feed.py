"""A writer and the pollers of two hypervisors, over TLS on loopback."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from forewarned.clock import wall_clock
from forewarned.config.values import Address
from forewarned.core.ids import HostName
from forewarned.core.model import EventStatus
from forewarned.feed.hosts.connection import connecting
from forewarned.feed.hosts.server import HostFeedServer
from forewarned.security import certificates, host_certificates
from forewarned.security.certificates import CertificateError
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.records import Caller
from tests.builders import OPERATOR
from tests.feed.joined import REPORT, WEB, Poller, Writer, until, writing

ON_A = VirtualMachine(name=WEB, address="10.0.0.1", host="hv-a")
ON_B = VirtualMachine(name=REPORT, address="10.0.0.2", host="hv-b")


@dataclass(frozen=True, slots=True)
class Site:
    writer: Writer
    feed: Address
    folder: Path
    """Of the certificates."""

    async def declare(self, *vms: VirtualMachine) -> None:
        await self.writer.use_cases.fleet.apply(FleetPlan(vms=vms), by=OPERATOR)

    def bundle(self, host: str) -> Path:
        path = self.folder / f"{host}.pem"
        path.write_bytes(host_certificates.issue(self.folder, HostName(host), now=wall_clock()))
        return path

    def poller(self, host: str) -> Poller:
        return Poller(connecting(self.feed, host_certificates.client_context(self.bundle(host))))

    @asynccontextmanager
    async def polling(self, host: str) -> AsyncIterator[Poller]:
        """From its first snapshot on."""
        poller = self.poller(host)
        async with poller.receiver, asyncio.timeout(60):
            await poller.receiver.first_snapshot()
            for name in announced(poller):
                await poller.reader.activate(poller.caller(name), address="")
            yield poller


@pytest.fixture
async def site(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(writing(is_file=True))
        own = certificates.provide(tmp_path, names=[], now=wall_clock(), file="feed.pem")
        listener = socket.create_server(("127.0.0.1", 0))
        feed = Address(*listener.getsockname())
        tls = host_certificates.server_context(own)
        await stack.enter_async_context(
            HostFeedServer(writer.feed, writer.use_cases, listener, tls)
        )
        made = Site(writer, feed, tmp_path)
        await made.declare(ON_A, ON_B)
        yield made


def announced(poller: Poller) -> dict[str, int]:
    """The incarnation of each VM that the poller knows."""
    found = ((name, poller.directory.by_name(name)) for name in (WEB, REPORT))
    return {name: poller.incarnation(name) for name, caller in found if caller is not None}


async def test_a_host_is_told_of_its_own_vms_only(site: Site) -> None:
    """S3, I25: its snapshot, and what is committed after it."""
    async with site.polling("hv-a") as a, site.polling("hv-b") as b:
        first = announced(a), announced(b)

        await site.writer.schedule(REPORT)
        await until(lambda: b.incarnation(REPORT) == 2)
        await site.writer.schedule(WEB)
        await until(lambda: a.incarnation(WEB) == 2)

        assert first == ({WEB: 1}, {REPORT: 1})
        assert (announced(a), announced(b)) == ({WEB: 2}, {REPORT: 2})
        assert len(a.board.pages()) == len(b.board.pages()) == 1


async def test_a_vm_that_moves_is_known_at_its_new_host_and_no_more_at_its_old(site: Site) -> None:
    async with site.polling("hv-a") as a, site.polling("hv-b") as b:
        await site.declare(ON_A, replace(ON_B, host="hv-a"))
        await until(lambda: not announced(b) and len(announced(a)) == 2)
        await site.writer.schedule(REPORT)
        await until(lambda: a.incarnation(REPORT) == 2)

        assert (a.snapshots, b.snapshots) == (2, 2)


async def test_a_vm_that_gets_another_address_is_known_by_it_at_once(site: Site) -> None:
    """I9."""
    async with site.polling("hv-a") as poller:
        await site.declare(replace(ON_A, address="10.0.0.9"))
        await until(lambda: poller.directory.by_address("10.0.0.9") is not None)

        assert poller.directory.by_address("10.0.0.1") is None
        assert poller.snapshots == 1


async def test_an_approval_is_durable_and_shown_when_it_is_answered(site: Site) -> None:
    """Commit, tell, answer."""
    async with site.polling("hv-a") as poller:
        record = await site.writer.schedule(WEB)
        await until(lambda: poller.incarnation() == 2)

        await poller.approver.approve([record.event.id], caller=poller.caller(), address="10.0.0.1")

        [event] = poller.board.page(poller.caller().scope_id).document.events  # type: ignore[union-attr]  # it was there a moment ago
        assert event.status is EventStatus.STARTED


async def test_a_host_can_not_approve_or_ask_in_the_name_of_another_hosts_vm(site: Site) -> None:
    """S3, S11."""
    async with site.polling("hv-a") as a, site.polling("hv-b") as b:
        theirs = b.caller(REPORT)
        record = await site.writer.schedule(REPORT)

        with pytest.raises(StoreUnavailableError):
            await a.approver.approve([record.event.id], caller=theirs, address="10.0.0.2")
        with pytest.raises(StoreUnavailableError):
            await a.reader.activate(theirs, address="10.0.0.2")
        with pytest.raises(StoreUnavailableError):
            await a.reader.about(REPORT)
        with pytest.raises(StoreUnavailableError):
            await a.readiness.reports(record.event.id, caller=theirs)
        mixed = Caller(WEB, theirs.scope_id)
        with pytest.raises(StoreUnavailableError):
            await a.approver.approve([record.event.id], caller=mixed, address="10.0.0.1")

        await until(lambda: b.incarnation(REPORT) == 2)
        [event] = b.board.page(theirs.scope_id).document.events  # type: ignore[union-attr]  # as above
        assert event.status is EventStatus.SCHEDULED


async def test_who_has_no_certificate_of_a_host_is_not_let_in(site: Site) -> None:
    """S12: not one without any, and not one with the server's own."""
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.load_verify_locations(site.folder / "arm-ca.pem")
    servers_own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    servers_own.load_verify_locations(site.folder / "arm-ca.pem")
    servers_own.load_cert_chain(site.folder / "feed.pem", site.folder / "feed-key.pem")

    for context in (bare, servers_own):
        reader, stream = await asyncio.open_connection(site.feed.host, site.feed.port, ssl=context)
        read = b""
        with contextlib.suppress(OSError):
            read = await reader.read(1)
        stream.close()
        # The first word would be the writer's.
        assert not read


async def test_a_poller_does_not_take_another_server_for_its_own(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    certificates.provide(other, names=[], now=wall_clock())
    bundle = other / "hv-a.pem"
    bundle.write_bytes(host_certificates.issue(other, HostName("hv-a"), now=wall_clock()))

    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection(
            site.feed.host, site.feed.port, ssl=host_certificates.client_context(bundle)
        )


def test_a_file_that_is_no_hosts_certificate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hv-a.pem"
    path.write_text("nothing")

    with pytest.raises(CertificateError, match="is not what `forewarned host certificate` prints"):
        host_certificates.client_context(path)
    with pytest.raises(CertificateError, match="start a server with --feed there first"):
        host_certificates.issue(tmp_path, HostName("hv-a"), now=wall_clock())
