"""S12, S14: who is admitted, and what is written down of those who are not."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.control.http.access import OpenAccess, SignInError, anyone, audiences_of
from forewarned.core.model import Actor
from forewarned.security.identities import (
    Bearer,
    InvalidTokenError,
    MissingTokenError,
    Principal,
    Role,
    RoleTooLowError,
)
from tests.control.access_setup import (
    AFAR,
    ARM,
    CLIENT_ID,
    PEOPLE,
    SECRET,
    AccessSetup,
    access_setup,
    digest,
    token_of,
)

ROLES = list(Role)


@pytest.fixture
async def gate(anyio_backend: object, tmp_path: Path) -> AsyncIterator[AccessSetup]:
    async with access_setup(tmp_path) as made:
        yield made


@pytest.fixture
async def emulator(anyio_backend: object, tmp_path: Path) -> AsyncIterator[AccessSetup]:
    async with access_setup(tmp_path, open_on_loopback=True) as made:
        yield made


async def admit(
    gate: AccessSetup, text: str | None, *, needs: Role = Role.READER, address: str = AFAR
) -> Actor:
    header = None if text is None else f"Bearer {text}"
    return await gate.door.admit(authorization=header, address=address, needs=needs)


@pytest.mark.parametrize("needs", ROLES)
@pytest.mark.parametrize("has", ROLES)
async def test_a_role_may_do_what_those_before_it_may_and_no_more(
    gate: AccessSetup, has: Role, needs: Role
) -> None:
    if has in {needs, Role.ADMIN} or ROLES.index(needs) < ROLES.index(has) < ROLES.index(
        Role.ADMIN
    ):
        assert await admit(gate, token_of(has), needs=needs) == Actor(name=has, address=AFAR)
        assert await gate.refusals() == []
        return
    with pytest.raises(RoleTooLowError) as caught:
        await admit(gate, token_of(has), needs=needs)
    assert str(caught.value) == f"this needs the role {needs}, and '{has}' has the role {has}"
    [row] = await gate.refusals()
    assert (row.actor, row.address, row.cause) == (has, AFAR, str(caught.value))


# --- static tokens -------------------------------------------------------------------------------


async def test_no_token_is_not_admitted_from_anywhere(gate: AccessSetup) -> None:
    for address in (AFAR, "127.0.0.1", "::1"):
        with pytest.raises(MissingTokenError, match="forewarned token create"):
            await admit(gate, None, address=address)

    assert {(row.actor, row.address) for row in await gate.refusals()} == {
        ("unknown", AFAR),
        ("unknown", "127.0.0.1"),
        ("unknown", "::1"),
    }


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "fw_admin"])
async def test_a_header_that_is_no_bearer_is_refused(gate: AccessSetup, header: str) -> None:
    with pytest.raises(InvalidTokenError, match="must be `Bearer`"):
        await gate.door.admit(authorization=header, address=AFAR, needs=Role.READER)


@pytest.mark.parametrize("text", ["fw_wrong", "fw_admi", "fw_adminn", "FW_ADMIN", "é", "\udc80"])
async def test_a_wrong_token_is_refused(gate: AccessSetup, text: str) -> None:
    with pytest.raises(InvalidTokenError, match="this token is unknown"):
        await admit(gate, text)


async def test_the_digest_is_not_the_token(gate: AccessSetup) -> None:
    """Whoever has read the file can sign in as nobody."""
    for principal in PEOPLE:
        for text in (principal.token_sha256, principal.secret_sha256, principal.client_id):
            with pytest.raises(InvalidTokenError):
                await admit(gate, text or "-")


async def test_a_service_principals_secret_is_no_bearer_token(gate: AccessSetup) -> None:
    with pytest.raises(InvalidTokenError):
        await admit(gate, SECRET)


async def test_a_token_is_refused_from_the_moment_it_expires(gate: AccessSetup) -> None:
    """By real time, whatever the server's own clock shows."""
    ends = gate.times.now + timedelta(days=30)
    brief = Principal(name="brief", role=Role.ADMIN, token_sha256=digest("fw_x"), expires_at=ends)
    gate.roster.people = (brief,)

    gate.times.now = ends - timedelta(seconds=1)
    assert (await admit(gate, "fw_x")).name == "brief"
    assert gate.access.holder(brief.token_sha256) == brief

    gate.times.now = ends
    with pytest.raises(InvalidTokenError, match=r"the token of 'brief' expired at .* UTC"):
        await admit(gate, "fw_x")
    with pytest.raises(InvalidTokenError, match="expired"):
        await gate.access.recognize("fw_x", address=AFAR)
    # So a session at the console ends, too.
    assert gate.access.holder(brief.token_sha256) is None
    assert {row.actor for row in await gate.refusals()} <= {"brief", "unknown"}


async def test_a_service_principal_that_has_expired_can_neither_sign_in_nor_use_its_token(
    gate: AccessSetup,
) -> None:
    ends = gate.times.now + timedelta(minutes=10)
    gate.roster.people = [replace(each, expires_at=ends) for each in PEOPLE]
    issued = await gate.access.sign_in(CLIENT_ID, SECRET, audience=ARM, address=AFAR)
    assert (await admit(gate, issued.text)).name == "ci"

    gate.times.now = ends
    with pytest.raises(InvalidTokenError, match="expired"):
        await admit(gate, issued.text)
    with pytest.raises(SignInError):
        await gate.access.sign_in(CLIENT_ID, SECRET, audience=ARM, address=AFAR)


async def test_a_revoked_token_is_refused_at_once(gate: AccessSetup) -> None:
    await admit(gate, token_of(Role.ADMIN))

    gate.roster.people = ()

    with pytest.raises(InvalidTokenError):
        await admit(gate, token_of(Role.ADMIN))


# --- tokens of VMs -------------------------------------------------------------------------------


async def test_a_vm_is_admitted_as_itself(gate: AccessSetup) -> None:
    actor = await admit(gate, await gate.vm_token("web"), needs=Role.APPROVER)

    assert actor == Actor(name="vm:web", address=AFAR, resource=actor.resource)
    assert actor.resource == "web"


async def test_another_vms_token_is_another_vms(gate: AccessSetup) -> None:
    assert (await admit(gate, await gate.vm_token("db-0"))).resource == "db-0"


async def test_a_vm_has_the_role_of_the_setting(gate: AccessSetup, tmp_path: Path) -> None:
    with pytest.raises(RoleTooLowError, match="needs the role maintainer, and 'vm:web' has"):
        await admit(gate, await gate.vm_token(), needs=Role.MAINTAINER)

    async with access_setup(tmp_path, vm_role=Role.ADMIN) as trusting:
        actor = await admit(trusting, await trusting.vm_token(), needs=Role.ADMIN)
        assert actor.resource == "web"


async def test_the_token_of_a_vm_that_is_gone_is_refused(gate: AccessSetup) -> None:
    token = await gate.vm_token("web")
    await admit(gate, token)

    await gate.steered.put_fleet({"vms": [{"name": "other", "address": "10.0.0.9"}]}, prune="true")

    with pytest.raises(InvalidTokenError, match="the VM 'web', which owns this token, is gone"):
        await admit(gate, token)


async def test_the_token_of_a_namesake_is_refused(gate: AccessSetup) -> None:
    other = Bearer(subject="web", object_id="another", resource_path="/x")
    token = await gate.tokens.issue(other, audience=ARM)

    with pytest.raises(InvalidTokenError, match="is gone"):
        await admit(gate, token.text)


async def test_an_expired_token_is_refused(gate: AccessSetup) -> None:
    token = await gate.vm_token()
    gate.times.now += timedelta(hours=1)

    with pytest.raises(InvalidTokenError, match="expired: sign in again"):
        await admit(gate, token)


async def test_another_servers_token_is_refused(gate: AccessSetup, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with access_setup(tmp_path / "other") as other:
        token = await other.vm_token()

    with pytest.raises(InvalidTokenError, match="not issued by this server"):
        await admit(gate, token)


@pytest.mark.parametrize(
    "audience",
    [
        ARM,
        f"{ARM}/",
        "https://127.0.0.1:8171",
        "https://[::1]:8171/",
        "HTTPS://ARM.EXAMPLE:8171",
        "https://management.azure.com/",
        "https://management.azure.com",
        "https://management.core.windows.net/",
    ],
)
async def test_a_token_for_any_name_of_the_listener_will_do(
    gate: AccessSetup, audience: str
) -> None:
    assert (await admit(gate, await gate.vm_token(audience=audience))).resource == "web"


@pytest.mark.parametrize(
    "audience",
    [
        "https://vault.azure.net",
        "https://localhost",
        "https://localhost:8172",
        "http://localhost:8171",
        "https://localhost:8171.evil.test",
        "https://localhost:8171/x",
        "localhost:8171",
        "/",
    ],
)
async def test_a_token_for_somebody_else_is_refused(gate: AccessSetup, audience: str) -> None:
    with pytest.raises(InvalidTokenError, match="not for this server"):
        await admit(gate, await gate.vm_token(audience=audience))


def test_audiences_are_the_listeners_urls_and_azures() -> None:
    assert audiences_of("https://10.0.0.5:8171", ["arm.test", "fd00::1"]) == (
        "https://10.0.0.5:8171",
        "https://localhost:8171",
        "https://127.0.0.1:8171",
        "https://[::1]:8171",
        "https://arm.test:8171",
        "https://[fd00::1]:8171",
        "https://management.azure.com",
        "https://management.core.windows.net",
    )


# --- service principals --------------------------------------------------------------------------


async def test_a_service_principal_signs_in_and_is_admitted_by_name(gate: AccessSetup) -> None:
    token = await gate.door.sign_in(CLIENT_ID.upper(), SECRET, audience=ARM, address=AFAR)

    actor = await admit(gate, token.text, needs=Role.MAINTAINER)
    assert actor == Actor(name="ci", address=AFAR)
    with pytest.raises(RoleTooLowError):
        await admit(gate, token.text, needs=Role.ADMIN)


@pytest.mark.parametrize(
    ("client_id", "secret"),
    [(CLIENT_ID, "wrong"), ("someone", SECRET), ("", ""), (CLIENT_ID, digest(SECRET))],
)
async def test_a_wrong_secret_gets_no_token_and_is_recorded(
    gate: AccessSetup, client_id: str, secret: str
) -> None:
    with pytest.raises(SignInError):
        await gate.door.sign_in(client_id, secret, audience=ARM, address=AFAR)

    [row] = await gate.refusals()
    assert (row.actor, row.address) == ("unknown", AFAR)
    assert row.cause == "sign-in with a wrong client id or secret"


async def test_a_bearer_of_a_token_has_no_empty_client_id_to_sign_in_with(
    gate: AccessSetup,
) -> None:
    gate.roster.people = (Principal(name="a", role=Role.ADMIN, token_sha256=digest("x")),)

    for secret in ("", "x"):
        with pytest.raises(SignInError):
            await gate.door.sign_in("", secret, audience=ARM, address=AFAR)


async def test_a_revoked_service_principals_token_is_refused_at_once(gate: AccessSetup) -> None:
    token = await gate.door.sign_in(CLIENT_ID, SECRET, audience=ARM, address=AFAR)

    gate.roster.people = ()

    with pytest.raises(InvalidTokenError, match="revoked"):
        await admit(gate, token.text)


# --- an emulator's own machine -------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.3", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("text", [None, "whatever", "a.b.c", token_of(Role.READER)])
async def test_everybody_on_an_emulators_machine_is_admin(
    emulator: AccessSetup, address: str, text: str | None
) -> None:
    actor = await admit(emulator, text, needs=Role.ADMIN, address=address)

    assert actor.name == ("reader" if text == token_of(Role.READER) else "local")
    assert actor.address == address
    assert await emulator.refusals() == []


async def test_everybody_is_admin_of_an_emulator_that_is_open_to_everyone(
    gate: AccessSetup,
) -> None:
    door = OpenAccess(gate.access, is_open_to=anyone)

    stranger = await door.admit(authorization=None, address=AFAR, needs=Role.ADMIN)
    token = await door.sign_in("me", "any", audience=ARM, address=AFAR)

    assert stranger == Actor(name="local", address=AFAR)
    assert token.text


async def test_a_vms_token_is_a_name_and_no_bound_on_an_emulators_machine(
    emulator: AccessSetup,
) -> None:
    token = await emulator.vm_token("db-0")

    actor = await admit(emulator, token, needs=Role.ADMIN, address="127.0.0.1")

    assert actor == Actor(name="vm:db-0", address="127.0.0.1", resource=None)


async def test_any_secret_signs_in_on_an_emulators_machine_and_nowhere_else(
    emulator: AccessSetup,
) -> None:
    token = await emulator.door.sign_in("me", "any", audience=ARM, address="127.0.0.1")

    assert (await admit(emulator, token.text, address="127.0.0.1")).name == "local"
    with pytest.raises(InvalidTokenError):
        await admit(emulator, token.text)
    with pytest.raises(SignInError):
        await emulator.door.sign_in("me", "any", audience=ARM, address=AFAR)


async def test_a_sign_in_without_the_secret_is_no_service_principals_elsewhere(
    emulator: AccessSetup,
) -> None:
    """S12: the other listener of an emulator may ask for tokens that prove something."""
    guessed = await emulator.door.sign_in(CLIENT_ID, "any", audience=ARM, address="127.0.0.1")
    proven = await emulator.door.sign_in(CLIENT_ID, SECRET, audience=ARM, address="127.0.0.1")

    assert (await admit(emulator, guessed.text, address="127.0.0.1")).name == "local"
    with pytest.raises(InvalidTokenError):
        await emulator.access.known(f"Bearer {guessed.text}", "127.0.0.1")
    assert (await emulator.access.known(f"Bearer {proven.text}", "127.0.0.1")).actor.name == "ci"


@pytest.mark.parametrize("address", [AFAR, "10.0.0.1", "::ffff:10.0.0.1", "", "unix", "0.0.0.0"])
async def test_from_another_machine_an_emulator_wants_a_token(
    emulator: AccessSetup, address: str
) -> None:
    with pytest.raises(MissingTokenError):
        await admit(emulator, None, address=address)


# --- somebody in front of a browser --------------------------------------------------------------


async def test_a_token_that_was_typed_in_is_recognized_and_looked_up_again(
    gate: AccessSetup,
) -> None:
    """S13."""
    principal = await gate.access.recognize(token_of(Role.READER), address=AFAR)

    assert principal.name == "reader"
    assert gate.access.holder(principal.token_sha256) == principal
    await gate.access.require(principal, address=AFAR, needs=Role.READER)
    with pytest.raises(RoleTooLowError):
        await gate.access.require(principal, address=AFAR, needs=Role.APPROVER)
    [row] = await gate.refusals()
    assert (row.actor, row.address) == ("reader", AFAR)
    gate.roster.people = ()
    assert gate.access.holder(principal.token_sha256) is None


async def test_what_is_no_static_token_is_not_recognized_and_is_recorded(gate: AccessSetup) -> None:
    """S13: nor is one that has no digest, which service principals have in common."""
    for text in ("", "fw_guess", await gate.vm_token(), SECRET):
        gate.times.seconds += 2
        with pytest.raises(InvalidTokenError):
            await gate.access.recognize(text, address=AFAR)

    assert len(await gate.refusals()) == 4
    assert gate.access.holder("") is None


# --- the record of refusals ----------------------------------------------------------------------


async def test_refusals_of_one_address_are_recorded_once_a_second(gate: AccessSetup) -> None:
    for _ in range(50):
        with pytest.raises(MissingTokenError):
            await admit(gate, None)
        gate.times.seconds += 0.1

    assert len(await gate.refusals()) == 5


async def test_another_address_is_recorded_beside_the_first(gate: AccessSetup) -> None:
    for address in (AFAR, "203.0.113.8", AFAR):
        with pytest.raises(MissingTokenError):
            await admit(gate, None, address=address)

    assert [row.address for row in await gate.refusals()] == ["203.0.113.8", AFAR]


async def test_a_household_of_ipv6_is_one_address(gate: AccessSetup) -> None:
    for number in range(20):
        with pytest.raises(MissingTokenError):
            await admit(gate, None, address=f"2001:db8::{number:x}")

    assert len(await gate.refusals()) == 1


async def test_a_thousand_addresses_fill_neither_disk_nor_memory(gate: AccessSetup) -> None:
    for number in range(1000):
        with pytest.raises(MissingTokenError):
            await admit(gate, None, address=f"10.0.{number // 250}.{number % 250}")

    assert len(await gate.refusals()) == 256
    gate.times.seconds += 1
    with pytest.raises(MissingTokenError):
        await admit(gate, None)
    assert len(gate.access._refusals._recorded) == 1


async def test_who_may_not_is_turned_away_even_when_it_cant_be_written_down(
    gate: AccessSetup,
) -> None:
    """S17."""
    gate.steered.store.is_down = True

    with pytest.raises(MissingTokenError):
        await admit(gate, None)


async def test_no_secret_gets_into_the_history(gate: AccessSetup) -> None:
    token = await gate.vm_token(audience="https://elsewhere")
    for text in ("fw_guess", token):
        gate.times.seconds += 2
        with pytest.raises(InvalidTokenError):
            await admit(gate, text)

    causes = [row.cause for row in await gate.refusals()]
    assert len(causes) == 2
    assert not any(text in cause for cause in causes for text in ("fw_guess", token))
