"""TLS between a store and its PostgreSQL: what has to be true of the server's certificate."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from forewarned.clock import wall_clock
from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.rules import Rules
from forewarned.security import certificates
from forewarned.storage.errors import (
    NoTlsError,
    OtherNameError,
    UntrustedCertificateError,
)
from forewarned.storage.postgres.connection import connect
from forewarned.storage.postgres.store import PostgresStore
from forewarned.storage.postgres.url import target
from tests import preloaded
from tests.builders import NOON, a_node_record, a_scope
from tests.end_to_end.server_process import environment
from tests.postgresql.servers import SUPERUSER, PostgresServer, private_folder
from tests.storage.store_calls import keep, load

NAME: Final = "db1.internal"
"""In the server's certificate."""
OTHER_NAME: Final = "db2.internal"
DATABASE: Final = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A server, and what its clients may be given to trust."""

    server: PostgresServer
    authority: Path
    other_authority: Path

    def url(self, *, name: str = NAME, trusting: Path | None = None) -> str:
        """`name` is what the certificate is compared with, and loopback where to connect."""
        ca = self.authority if trusting is None else trusting
        return (
            f"postgresql://{SUPERUSER}@{name}:{self.server.port}/{DATABASE}"
            f"?hostaddr={self.server.host}&sslmode=verify-full&sslrootcert={ca}"
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    ours, theirs = (tmp_path_factory.mktemp(name) for name in ("ours", "theirs"))
    made = certificates.provide(ours, names=[NAME], now=wall_clock())
    other = certificates.provide(theirs, names=[], now=wall_clock())
    with private_folder() as folder:
        settings = {"ssl": "on"}
        for setting, file in (("ssl_cert_file", made.certificate), ("ssl_key_file", made.key)):
            settings[setting] = str(_own(file, folder))
        with PostgresServer(folder, settings=settings) as server:
            server.ask(f"CREATE DATABASE {DATABASE}")
            yield Secured(server=server, authority=made.authority, other_authority=other.authority)


def _own(file: Path, folder: Path) -> Path:
    """A copy that belongs to PostgreSQL's user: it refuses any other's key."""
    copy = folder / file.name
    shutil.copy(file, copy)
    shutil.chown(copy, folder.stat().st_uid, folder.stat().st_gid)
    copy.chmod(0o600)
    return copy


async def test_a_store_is_opened_and_changed_over_connections_whose_server_has_been_verified(
    secured: Secured,
) -> None:
    store = PostgresStore(
        DatabaseUrl.parse(secured.url()),
        node=a_node_record("one"),
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        rules={},
        read_clock=lambda _: NOON,
    )

    async with store:
        await keep(store, a_scope())
        found = await load(store)
        sessions = secured.server.ask(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
            " WHERE application_name LIKE 'forewarned%%'"
        )

    assert found == a_scope()
    assert len(sessions) > 3
    assert set(sessions) == {(True,)}


def test_a_certificate_by_another_authority_is_refused_with_what_to_do(secured: Secured) -> None:
    with pytest.raises(UntrustedCertificateError, match="sslrootcert") as refused:
        _open(secured.url(trusting=secured.other_authority))

    assert "certificate verify failed" in str(refused.value)


def test_a_file_of_authorities_that_is_not_there_is_named(secured: Secured, tmp_path: Path) -> None:
    with pytest.raises(UntrustedCertificateError, match="sslrootcert") as refused:
        _open(secured.url(trusting=tmp_path / "missing.pem"))

    assert f'"{tmp_path / "missing.pem"}" does not exist' in str(refused.value)


def test_a_certificate_for_another_name_is_refused_with_both_names(secured: Secured) -> None:
    with pytest.raises(
        OtherNameError, match="a host name that is in PostgreSQL's certificate"
    ) as refused:
        _open(secured.url(name=OTHER_NAME))

    assert f'does not match host name "{OTHER_NAME}"' in str(refused.value)


def test_of_several_hosts_a_certificate_that_does_not_fit_is_told_rather_than_one_that_is_down(
    secured: Secured,
) -> None:
    """The host that is down may be so for good; the other one is what an operator can mend."""
    url = secured.url(trusting=secured.other_authority)
    both = url.replace(NAME, f"{NAME}:1,{NAME}").replace("hostaddr=", "hostaddr=127.0.0.1,")

    with pytest.raises(UntrustedCertificateError, match="Connection refused"):
        _open(both)


def test_a_server_without_tls_is_refused_if_the_url_asks_for_it(
    postgres_server: PostgresServer,
) -> None:
    with pytest.raises(NoTlsError, match="ssl_cert_file"):
        _open(f"{postgres_server.url()}?sslmode=require")


@pytest.mark.parametrize(
    ("name", "is_trusted", "advice"),
    [
        (NAME, False, "sslrootcert"),
        (OTHER_NAME, True, "a host name that is in PostgreSQL's certificate"),
    ],
    ids=["wrong authority", "wrong name"],
)
def test_a_node_that_does_not_trust_its_database_serves_nothing_and_says_why_in_one_line(
    secured: Secured, tmp_path: Path, *, name: str, is_trusted: bool, advice: str
) -> None:
    ca = secured.authority if is_trusted else secured.other_authority
    url = secured.url(name=name, trusting=ca)
    words = ("serve", "--mode=service", f"--store={url}", f"--data={tmp_path / 'state'}")
    anywhere = ("--metadata=127.0.0.1:0", "--control=127.0.0.1:0", "--arm=off", "--workers=0")

    ended = preloaded.run(*words, *anywhere, folder=tmp_path, environment=environment())

    [line] = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert line.startswith("error: can't connect to PostgreSQL database store at ")
    assert advice in line


def _open(url: str) -> None:
    connect(target(DatabaseUrl.parse(url))).close()
