"""Where service principals sign in: OAuth's client credentials, and what leads clients there.

A tenant's name in a path may be any: there is one tenant, and clients that know no better write
`common`, `adfs` or something of their own.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from forewarned.control.arm.answers import ArmAnswer, ok
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import Content, Operation, open_read
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import SignInError
from forewarned.control.http.errors import failure
from forewarned.security.identities import ISSUER, IssuedToken, TokensUnavailableError

_ALL_OF_IT: Final = "/.default"
"""The end of a scope that asks for everything its resource grants."""
_LONGEST_AUDIENCE: Final = 1024


def describe_sign_in(asked: Asked) -> ArmAnswer:
    return ok(_described(asked, "oauth2/token"))


def describe_sign_in_v2(asked: Asked) -> ArmAnswer:
    return ok(_described(asked, "oauth2/v2.0/token"))


def _described(asked: Asked, token_path: str) -> dict[str, object]:
    tenant = f"{asked.root}/{quote(asked.path['tenant'])}"
    return {
        "issuer": ISSUER,
        # Clients expect these, though no one can sign in by a page or a device here.
        "authorization_endpoint": f"{tenant}/oauth2/v2.0/authorize",
        "device_authorization_endpoint": f"{tenant}/oauth2/v2.0/devicecode",
        "token_endpoint": f"{tenant}/{token_path}",
        "jwks_uri": f"{tenant}/discovery/v2.0/keys",
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


async def list_keys(services: ArmServices, _: Asked) -> ArmAnswer:
    return ok(await services.access.key_set())


async def sign_in(services: ArmServices, asked: Asked) -> ArmAnswer:
    fields = asked.body or {}
    if fields.get("grant_type") != "client_credentials":
        return _refused("unsupported_grant_type", "grant_type must be client_credentials")
    client_id, secret = fields.get("client_id", ""), fields.get("client_secret", "")
    audience = _audience(fields.get("scope", ""), fields.get("resource", ""))
    if not client_id or not secret:
        return _refused("invalid_request", "client_id and client_secret are required")
    if not audience:
        return _refused(
            "invalid_scope",
            "scope must be one resource followed by /.default, or resource must name one:"
            f" {asked.root}/.default",
        )
    try:
        token = await services.access.sign_in(
            client_id, secret, audience=audience, address=asked.by.address
        )
    except SignInError as error:
        return _refused("invalid_client", str(error), failure(error).status)
    except TokensUnavailableError as error:
        return _refused("server_error", str(error), failure(error).status)
    return ok(_issued(token, audience))


def _audience(scope: str, resource: str) -> str:
    """Empty if it is not clear. There may be scopes of OpenID besides."""
    if not scope:
        return resource if _is_sane(resource) else ""
    asked_for = [each for each in scope.split() if each.endswith(_ALL_OF_IT)]
    if len(asked_for) != 1:
        return ""
    audience = asked_for[0].removesuffix(_ALL_OF_IT)
    return audience if _is_sane(audience) else ""


def _is_sane(audience: str) -> bool:
    return audience.isprintable() and len(audience) <= _LONGEST_AUDIENCE


def _issued(token: IssuedToken, audience: str) -> dict[str, object]:
    lifetime = int((token.expires_at - token.not_before).total_seconds())
    return {
        "token_type": "Bearer",
        "expires_in": lifetime,
        "ext_expires_in": lifetime,
        "expires_on": int(token.expires_at.timestamp()),
        "not_before": int(token.not_before.timestamp()),
        "resource": audience,
        "access_token": token.text,
    }


def _refused(word: str, description: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> ArmAnswer:
    """In OAuth's shape, which is not ARM's."""
    return ArmAnswer(status=status, body={"error": word, "error_description": description})


def _post(path: str) -> Operation:
    return Operation(
        method="POST",
        path=path,
        answer=sign_in,
        needs=None,
        content=Content.FORM,
        is_versioned=False,
    )


_KEYS: Final = "/{tenant}/discovery/v2.0/keys"

OPERATIONS: Final = (
    open_read("/{tenant}/.well-known/openid-configuration", describe_sign_in),
    open_read("/{tenant}/v2.0/.well-known/openid-configuration", describe_sign_in_v2),
    Operation(method="GET", path=_KEYS, answer=list_keys, needs=None, is_versioned=False),
    _post("/{tenant}/oauth2/token"),
    _post("/{tenant}/oauth2/v2.0/token"),
)
