"""The certificate of a server that is never restarted."""

from datetime import timedelta
from pathlib import Path

from forewarned.clock import wall_clock
from forewarned.runtime.admission import certificate_renewed
from forewarned.runtime.settings import load
from forewarned.security import certificates
from forewarned.security.server_tls import expires_at
from tests.metadata.fakes import until


async def test_a_servers_own_certificate_is_renewed_while_it_runs(tmp_path: Path) -> None:
    long_ago = wall_clock() - timedelta(days=380)
    made = certificates.provide(tmp_path, names=["127.0.0.1"], now=long_ago)
    old = expires_at(made.certificate)
    settings = load(flags={"data": tmp_path}, environ={}).settings

    async with certificate_renewed(settings, every=timedelta(milliseconds=10)):
        await until(lambda: expires_at(made.certificate) != old)

    assert expires_at(made.certificate) > wall_clock() + timedelta(days=300)
