"""The identity endpoint: the token a VM gets for itself, in the names that OAuth has for it. Pure.

A VM has one identity, its own. Clients may name one by `client_id` and the like; they get this.
"""

from datetime import datetime

import msgspec

from forewarned.metadata.instance import resource_id
from forewarned.metadata.routes import ReadToken
from forewarned.security.identities import Bearer, IssuedToken
from forewarned.service.records import About


def bearer(vm: About) -> Bearer:
    return Bearer(
        subject=vm.binding.name,
        object_id=vm.binding.profile.vm_id,
        resource_path=resource_id(vm),
    )


def answer(operation: ReadToken, bearer: Bearer, token: IssuedToken) -> bytes:
    """Every value is a string, numbers too."""
    lifetime = str(int((token.expires_at - token.not_before).total_seconds()))
    return msgspec.json.encode(
        {
            "access_token": token.text,
            "client_id": operation.client_id or bearer.object_id,
            "expires_in": lifetime,
            "expires_on": _seconds(token.expires_at),
            "ext_expires_in": lifetime,
            "not_before": _seconds(token.not_before),
            "resource": operation.audience,
            "token_type": "Bearer",
        }
    )


def error(word: str, description: str) -> bytes:
    return msgspec.json.encode({"error": word, "error_description": description})


def _seconds(instant: datetime) -> str:
    return str(int(instant.timestamp()))
