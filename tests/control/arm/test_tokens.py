"""Signing in at the ARM listener, and what those are told who are not admitted (S12)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forewarned.control.arm.app import OPERATIONS
from forewarned.security.identities import ISSUER, Role
from tests.control.access_setup import CLIENT_ID, SECRET, AccessSetup, access_setup, token_of
from tests.control.arm.asking import PEER, ROOT, Asking, client, refusal

FORM = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": SECRET}
V2 = "/any-tenant/oauth2/v2.0/token"
SUBSCRIPTIONS = "/subscriptions?api-version=2022-12-01"


@dataclass
class Door:
    gate: AccessSetup
    http: httpx2.AsyncClient

    async def sign_in(self, path: str = V2, **fields: str) -> httpx2.Response:
        return await self.http.post(path, data={k: v for k, v in fields.items() if v})

    async def get(self, path: str, token: str | None = None) -> httpx2.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self.http.get(path, headers=headers)


@pytest.fixture
async def door(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Door]:
    async with access_setup(tmp_path) as gate:
        usual = Asking(gate.steered, OPERATIONS)
        services = replace(usual.services, access=gate.access)
        async with usual.http, client(services, OPERATIONS) as http:
            yield Door(gate, http)


@pytest.mark.parametrize(
    ("path", "token_path"),
    [
        ("/my.tenant/v2.0/.well-known/openid-configuration", "/my.tenant/oauth2/v2.0/token"),
        ("/adfs/.well-known/openid-configuration", "/adfs/oauth2/token"),
        ("/common/.well-known/openid-configuration", "/common/oauth2/token"),
    ],
)
async def test_clients_find_where_to_sign_in_without_signing_in(
    door: Door, path: str, token_path: str
) -> None:
    told: Any = (await door.get(path)).json()

    assert told["issuer"] == ISSUER
    assert told["token_endpoint"] == f"{ROOT}{token_path}"
    assert (await door.sign_in(token_path, **FORM, scope=f"{ROOT}/.default")).status_code == 200
    [key] = (await door.get(told["jwks_uri"].removeprefix(ROOT))).json()["keys"]
    assert (key["kty"], key["crv"], key["alg"]) == ("EC", "P-256", "ES256")
    assert "d" not in key


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": f"{ROOT}/.default"},
        {"scope": f"{ROOT}//.default"},
        {"scope": f"{ROOT}/.default openid profile offline_access"},
        {"resource": ROOT},
        {"resource": "https://management.azure.com/"},
    ],
)
async def test_a_service_principal_signs_in_and_reads(door: Door, fields: dict[str, str]) -> None:
    response = await door.sign_in(**FORM, **fields)

    issued = response.json()
    assert response.headers["Cache-Control"] == "no-store"
    assert (issued["token_type"], issued["expires_in"]) == ("Bearer", 3600)
    assert (await door.get(SUBSCRIPTIONS, issued["access_token"])).status_code == 200


@pytest.mark.parametrize(
    ("changed", "status", "word"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": "nobody"}, 401, "invalid_client"),
        ({"client_secret": ""}, 400, "invalid_request"),
        ({"client_id": ""}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, 400, "unsupported_grant_type"),
        ({"scope": ""}, 400, "invalid_scope"),
        ({"scope": "openid"}, 400, "invalid_scope"),
        ({"scope": "a/.default b/.default"}, 400, "invalid_scope"),
        ({"scope": f"{'x' * 2000}/.default"}, 400, "invalid_scope"),
        ({"scope": "", "resource": "a\nb"}, 400, "invalid_scope"),
    ],
)
async def test_a_bad_sign_in_is_told_in_oauths_words(
    door: Door, changed: dict[str, str], status: int, word: str
) -> None:
    response = await door.sign_in(**FORM | {"scope": f"{ROOT}/.default"} | changed)

    told = response.json()
    assert (response.status_code, told["error"]) == (status, word)
    assert told.keys() == {"error", "error_description"}
    assert SECRET not in response.text
    assert len(await door.gate.refusals()) == (1 if status == 401 else 0)


async def test_an_empty_sign_in_is_refused(door: Door) -> None:
    assert (await door.http.post(V2)).json()["error"] == "unsupported_grant_type"


async def test_without_a_token_the_answer_is_a_challenge(door: Door) -> None:
    response = await door.get(SUBSCRIPTIONS)

    assert refusal(response)[:2] == (401, "AuthenticationFailed")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    [row] = await door.gate.refusals()
    assert row.address == PEER


async def test_a_foreign_token_is_told_to_be_one(door: Door) -> None:
    response = await door.get(SUBSCRIPTIONS, "foreign")

    assert refusal(response)[:2] == (401, "InvalidAuthenticationToken")
    assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


async def test_a_role_too_low_is_told_the_one_it_takes(door: Door) -> None:
    path = "/subscriptions/s/resourcegroups/g?api-version=2024-11-01"
    response = await door.http.put(
        path, json={"location": "x"}, headers={"Authorization": f"Bearer {token_of(Role.READER)}"}
    )

    assert refusal(response) == (
        403,
        "AuthorizationFailed",
        "this needs the role admin, and 'reader' has the role reader",
    )
    assert "WWW-Authenticate" not in response.headers


def test_only_what_leads_to_signing_in_is_open() -> None:
    """S12: deny by default."""
    open_paths = {each.path for each in OPERATIONS if each.needs is None}

    assert open_paths == {
        "/metadata/endpoints",
        *(path for path in open_paths if "alias" in path.lower()),
        "/{tenant}/.well-known/openid-configuration",
        "/{tenant}/v2.0/.well-known/openid-configuration",
        "/{tenant}/discovery/v2.0/keys",
        "/{tenant}/oauth2/token",
        "/{tenant}/oauth2/v2.0/token",
    }
