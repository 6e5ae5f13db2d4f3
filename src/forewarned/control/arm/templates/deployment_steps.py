"""The operations of a deployment, as `az deployment operation group list` shows them. Pure.

A deployment is made as a whole or not at all, so its operations all succeeded, or there is one that
says what was wrong.
"""

import hashlib
from typing import Final

from forewarned.service.azure.models.documents import Json, decoded
from forewarned.service.records import Declaration

_OUTPUTS: Final = "EvaluateDeploymentOutput"
"""Azure's last operation of each deployment, which makes nothing."""


def steps(deployment: Declaration) -> list[Json]:
    document = decoded(deployment)
    if "error" in document:
        failed = {
            "provisioningOperation": "Create",
            "provisioningState": "Failed",
            "statusCode": "BadRequest",
            "statusMessage": {"status": "Failed", "error": document["error"]},
        }
        return [_shown(deployment, document, "failed", failed)]
    made = [_made(deployment, document, each["id"]) for each in document["outputResources"]]
    evaluated = {
        "provisioningOperation": _OUTPUTS,
        "provisioningState": "Succeeded",
        "statusCode": "OK",
    }
    return [*made, _shown(deployment, document, _OUTPUTS, evaluated)]


def _made(deployment: Declaration, document: Json, path: str) -> Json:
    namespace, *rest = path.rpartition("/providers/")[2].split("/")
    properties = {
        "provisioningOperation": "Create",
        "provisioningState": "Succeeded",
        "statusCode": "OK",
        "targetResource": {
            "id": path,
            "resourceType": "/".join([namespace, *rest[::2]]),
            "resourceName": "/".join(rest[1::2]),
        },
    }
    return _shown(deployment, document, path.casefold(), properties)


def _shown(deployment: Declaration, document: Json, of: str, properties: Json) -> Json:
    """`of` is what tells it from its siblings; its id follows from that, so it stays the same."""
    id_ = hashlib.sha256(of.encode()).hexdigest()[:16].upper()
    return {
        "id": f"{deployment.path}/operations/{id_}",
        "operationId": id_,
        "properties": {
            **properties,
            "timestamp": document["timestamp"],
            "duration": "PT0S",
            "trackingId": document["correlationId"],
        },
    }
