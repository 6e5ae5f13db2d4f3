"""Who may call a server's listeners, and the certificate it shows: one for all of them."""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from forewarned.clock import wall_clock
from forewarned.console.ended_sessions import EndedSessions
from forewarned.console.sessions import LONGEST_IDLE, Sessions
from forewarned.control.http.access import Access, Identities, audiences_of
from forewarned.runtime.assembly import new_session_id
from forewarned.runtime.listeners.acceptor import Tls
from forewarned.runtime.listeners.renewal import LOOKED_AT_EVERY, renewed
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import ControlAccess, Settings
from forewarned.security import certificates
from forewarned.security.identities import Principal, Role
from forewarned.security.principals import FILE, PrincipalsFile
from forewarned.security.server_tls import CertificateFiles, ServerTls
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.requests.ports import Principals
from forewarned.service.use_cases import UseCases

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    access: Access
    sessions: Sessions | None
    """Who is signed in at the console; None where the control listener is open."""
    tls: ServerTls | None
    """None where no listener needs a certificate."""
    control_is_tls: bool
    """Whether the control listener is one of those that do."""

    @property
    def control_access(self) -> Access | None:
        """None where every caller of the control listener may do everything."""
        return None if self.sessions is None else self.access

    @property
    def control_tls(self) -> Tls:
        return self.arm_tls if self.control_is_tls else _no_tls

    @property
    def arm_tls(self) -> Tls:
        return _no_tls if self.tls is None else self.tls.context

    def certificate_expires_at(self) -> datetime | None:
        """None where no listener presents one."""
        return None if self.tls is None else self.tls.expires_at()

    @property
    def ca_file(self) -> str | None:
        """The certificate of the server's own authority; None where it has none."""
        authority = None if self.tls is None else self.tls.files.authority
        return None if authority is None else str(authority.absolute())


def _no_tls() -> None:
    return None


async def make_admission(
    use_cases: UseCases,
    settings: Settings,
    keys: SigningKeys,
    addresses: Addresses,
    *,
    principals: Principals,
) -> Admission:
    """Raises CertificateError."""
    tokens = Tokens(keys)
    # The first audience is the one that documentation and errors name.
    urls = (addresses.arm_url, addresses.control_url)
    audiences = [each for url in urls if url for each in audiences_of(url, settings.hosts)]
    identities = Identities(
        issuer=tokens,
        reader=tokens,
        principals=principals,
        audiences=tuple(dict.fromkeys(audiences)),
        vm_role=settings.vm_role,
    )
    monotonic = asyncio.get_running_loop().time
    access = Access(identities, use_cases.engine, monotonic=monotonic)
    sessions = None
    if settings.control_access is ControlAccess.TOKEN:
        ended = EndedSessions(use_cases.engine, kept=LONGEST_IDLE)
        sessions = Sessions(access, keys, ended, new_id=new_session_id, now=wall_clock)
    certificate = await _certificate(settings)
    return Admission(
        access=access,
        sessions=sessions,
        # By the machine's own clock: clients have no other.
        tls=None
        if certificate is None
        else ServerTls(certificate, now=wall_clock, monotonic=monotonic),
        control_is_tls=settings.control_is_tls,
    )


def certificate_renewed(
    settings: Settings, *, every: timedelta = LOOKED_AT_EVERY
) -> AbstractAsyncContextManager[None]:
    """Renew the certificate of the server's own authority in time, while the block runs.

    Listeners take the new files by themselves.
    """
    return renewed(partial(_certificate, settings), every=every)


def principals_of(settings: Settings, shared: Principals | None) -> Principals:
    """`shared` are those that all nodes of a store have; None where a file has them.

    Raises PrincipalsError.
    """
    if shared is None:
        principals = PrincipalsFile(settings.data)
        principals.check()
        return principals
    if (settings.data / FILE).exists():
        _log.warning(
            "this file is not used, because nodes keep their tokens in the database:"
            " `forewarned token import` adds the file's tokens to it",
            extra={"file": str(settings.data / FILE)},
        )
    return shared


def with_actuators(principals: Principals, *, token: str) -> Principals:
    """And the server's own actuators, whose token is made anew at every start; empty for none."""
    return _WithActuators(principals, token) if token else principals


class _WithActuators:
    def __init__(self, others: Principals, token: str) -> None:
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._own = Principal(name="actuators", role=Role.ACTUATOR, token_sha256=digest)
        self._others = others

    def current(self) -> Sequence[Principal]:
        return (self._own, *self._others.current())


async def _certificate(settings: Settings) -> CertificateFiles | None:
    """The operator's, or one that is made here."""
    if settings.tls_certificate is not None and settings.tls_key is not None:
        return CertificateFiles(certificate=settings.tls_certificate, key=settings.tls_key)
    at = [] if settings.arm is None else [settings.arm]
    if settings.control_is_tls:
        at.append(settings.control)
    if not at:
        return None
    names = (*(each.host for each in at), *settings.hosts)
    made = await asyncio.to_thread(
        certificates.provide, settings.data, names=names, now=wall_clock()
    )
    return CertificateFiles(certificate=made.certificate, key=made.key, authority=made.authority)
