"""Deployments of templates: how `az vm create` and `az vmss create` make things.

All of a template is made in one transaction, or nothing. What is wrong with its values is told by
the operation's status: clients expect it there, and `az` can't read it anywhere else.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from forewarned.control.arm import errors
from forewarned.control.arm.answers import RETRY_AFTER, ArmAnswer, accepted, no_content, ok
from forewarned.control.arm.errors import ArmError, invalid_parameter
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.routes import (
    GROUP,
    Answer,
    Content,
    Operation,
    asking,
    delete,
    head,
    read,
)
from forewarned.control.arm.services import ArmServices
from forewarned.control.arm.templates.deployment_steps import steps
from forewarned.control.arm.templates.execution import make
from forewarned.control.arm.templates.expressions import Surroundings
from forewarned.control.arm.templates.template import Planned, Template, read_deployment
from forewarned.control.arm.templates.what_if import forecast, ignored
from forewarned.core.errors import RefusalError
from forewarned.security.identities import Role
from forewarned.service.azure import operations
from forewarned.service.azure.groups import declare
from forewarned.service.azure.models.documents import Fields, Json, decoded, encoded, without
from forewarned.service.azure.resource_ids import ResourceId, group_path, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration, OperationRecord

_TYPE: Final = "Microsoft.Resources/deployments"
_MODE: Final = "Incremental"
"""The only one here: what a template does not name is left alone."""
_TEMPLATE: Final = "template"
"""Kept with a deployment, to be exported. It is not shown with the rest."""
_NAME: Final = re.compile(r"[A-Za-z0-9._()-]{1,64}")
MOST_KEPT: Final = 800
"""Deployments of a group: the oldest are forgotten, as Azure does."""


# --- making --------------------------------------------------------------------------------------


async def put_deployment(services: ArmServices, asked: Asked) -> ArmAnswer:
    asked, properties, place = await _sent(services, asked)
    try:
        template = Template(properties, place)
        planned = template.planned()
        document, record, is_new = await services.engine.decide(
            lambda tx: _deploy(tx, asked, template, planned)
        )
    except (ArmError, RefusalError) as error:
        why = _why(error)
        document, record, is_new = await services.engine.decide(
            lambda tx: _fail(tx, asked, properties, why)
        )
    return ArmAnswer(
        status=HTTPStatus.CREATED if is_new else HTTPStatus.OK,
        body=_shown(_id(asked).path, document, state="Accepted"),
        headers={"Azure-AsyncOperation": _status_url(asked, record), "Retry-After": RETRY_AFTER},
    )


async def validate(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Make all of it, and then none."""
    asked, properties, place = await _sent(services, asked)
    template = Template(properties, place)
    planned = template.planned()
    trial = services.engine.rehearsal()
    document, _, __ = await trial.decide(lambda tx: _deploy(tx, asked, template, planned))
    return ok(_shown(_id(asked).path, document, state="Succeeded"))


async def what_if(services: ArmServices, asked: Asked) -> ArmAnswer:
    """Make all of it, compare, and then none.

    What is wrong with the deployment is told in the body of a 200: `az` can't read it elsewhere.
    """
    try:
        asked, properties, place = await _sent(services, asked)
        planned = Template(properties, place).planned()
        trial = services.engine.rehearsal()
        found = await trial.decide(lambda tx: forecast(tx, asked, planned))
        # Read separately: other writers wait for the trial, and should not wait for a long list.
        found += await services.engine.ask(lambda snapshot: ignored(snapshot, asked, planned))
    except (ArmError, RefusalError) as error:
        code, message = _why(error)
        return ok({"status": "Failed", "error": {"code": code, "message": message}})
    result_format = properties.object("whatIfSettings").text("resultFormat") or ""
    is_short = same(result_format, "ResourceIdOnly")
    changes = [each.shown(ids_alone=is_short) for each in found]
    return ok({"status": "Succeeded", "properties": {"changes": changes}})


async def _sent(services: ArmServices, asked: Asked) -> tuple[Asked, Fields, Surroundings]:
    """The request with the group's name as it is declared, the deployment, and where it goes.

    Raises ArmError, UnknownGroupError.
    """
    properties = read_deployment(asked.body or {})
    _refuse_name(asked.path["deployment"])
    view = await services.engine.ask(lambda snapshot: groups.find_asked(snapshot, asked))
    location = view.location or asked.context.location
    place = Surroundings(subscription=view.subscription, group=view.name, location=location)
    return replace(asked, path={**asked.path, "group": view.name}), properties, place


def _deploy(
    tx: Transaction, asked: Asked, template: Template, planned: list[Planned]
) -> tuple[Json, OperationRecord, bool]:
    groups.find_asked(tx, asked)
    made = make(tx, asked, planned)
    document = {
        "provisioningState": "Succeeded",
        "mode": _MODE,
        "parameters": template.shown_parameters(),
        "outputs": template.outputs(made.get),
        "outputResources": [{"id": path} for path in made.paths],
        _TEMPLATE: template.source,
    }
    event_ids = tuple(made.event_ids)
    record = operations.open_(tx, _id(asked).path, "deploy", event_ids, context=asked.context)
    return _keep(tx, asked, document, record)


def _fail(
    tx: Transaction, asked: Asked, properties: Fields, why: tuple[str, str]
) -> tuple[Json, OperationRecord, bool]:
    code, message = why
    document = {
        "provisioningState": "Failed",
        "mode": _MODE,
        "error": {"code": code, "message": message},
        _TEMPLATE: properties.raw("template"),
    }
    record = OperationRecord(
        id=asked.context.ids.operation(_id(asked).path, "deploy"),
        path=_id(asked).path,
        action="deploy",
        started_at=tx.now,
        failure_code=code,
        failure=message,
    )
    tx.open_operation(record)
    return _keep(tx, asked, document, record)


def _keep(
    tx: Transaction, asked: Asked, document: Json, record: OperationRecord
) -> tuple[Json, OperationRecord, bool]:
    id_ = _id(asked)
    kept = {**document, "timestamp": tx.now.isoformat(), "correlationId": record.id}
    is_new = tx.declaration(id_.path) is None
    if is_new:
        _forget_oldest(tx, id_)
    declare(tx, id_, encoded(kept))
    return kept, record, is_new


def _forget_oldest(tx: Transaction, id_: ResourceId) -> None:
    kept = _all(tx, id_.subscription, id_.group)
    oldest = sorted(kept, key=lambda each: each.created_at)
    for each in oldest[: max(0, len(kept) + 1 - MOST_KEPT)]:
        tx.withdraw(each.path)


def _why(error: Exception) -> tuple[str, str]:
    """Code and message, as for a request with the resource alone."""
    body = errors.answer(error, request_id="").body
    assert isinstance(body, dict)  # noqa: S101  # it is the one shape of an error
    return body["error"]["code"], body["error"]["message"]


# --- the steps of one ----------------------------------------------------------------------------


def list_steps(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """The operations of a deployment, one for each resource."""
    found = steps(_found(snapshot, asked))
    return ok(page(found, asked, lambda each: str(each["operationId"])))


def show_step(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    wanted = asked.path["operation"]
    for each in steps(_found(snapshot, asked)):
        if same(each["operationId"], wanted):
            return ok(each)
    raise errors.not_found(
        "DeploymentOperationNotFound",
        f"The deployment operation '{wanted[:100]}' could not be found.",
    )


# --- looking -------------------------------------------------------------------------------------


def show(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    return ok(_shown_declaration(_found(snapshot, asked)))


def check(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    _found(snapshot, asked)
    return no_content()


def list_in_group(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    view = groups.find_asked(snapshot, asked)
    found = _all(snapshot, view.subscription, view.name)
    return ok(page(found, asked, lambda each: each.path.casefold(), show=_shown_declaration))


def export(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """The template, as it was sent but for its comments."""
    document = decoded(_found(snapshot, asked))
    if _TEMPLATE not in document:
        raise errors.not_found(
            "DeploymentTemplateNotFound",
            f"The template of deployment '{asked.path['deployment'][:100]}' was not stored: it "
            "was deployed by an earlier release of the server. Deploy it again to export it.",
        )
    return ok({"template": document[_TEMPLATE]})


def delete_deployment(tx: Transaction, asked: Asked) -> ArmAnswer:
    """Of what it made nothing goes with it."""
    tx.withdraw(_found(tx, asked).path)
    record = operations.open_(tx, _id(asked).path, "delete", (), context=asked.context)
    return accepted(record, asked)


def _found(snapshot: Snapshot, asked: Asked) -> Declaration:
    groups.find_asked(snapshot, asked)
    found = snapshot.declaration(_id(asked).path)
    if found is None:
        raise errors.not_found(
            "DeploymentNotFound",
            f"Deployment '{asked.path['deployment'][:100]}' could not be found.",
        )
    return found


def _all(snapshot: Snapshot, subscription: str, group: str) -> list[Declaration]:
    return list(snapshot.declarations(f"{group_path(subscription, group)}/providers/{_TYPE}/"))


def _shown_declaration(declaration: Declaration) -> Json:
    return _shown(declaration.path, decoded(declaration))


def _shown(path: str, document: Mapping[str, Any], *, state: str = "") -> Json:
    properties = {
        **without(document, _TEMPLATE),
        "provisioningState": state or document["provisioningState"],
    }
    return {
        "id": path,
        "name": path.rpartition("/")[2],
        "type": _TYPE,
        "properties": properties,
    }


def _refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise invalid_parameter(
            "deploymentName",
            f"The deployment name '{name[:100]}' is invalid: expected 1 to 64 letters, digits,"
            " periods, underscores, hyphens and parentheses.",
        )


def _id(asked: Asked) -> ResourceId:
    return asked.id_of(_TYPE, asked.path["deployment"])


def _status_url(asked: Asked, record: OperationRecord) -> str:
    return (
        f"{asked.root}{asked.url.rstrip('/')}/operationStatuses/{record.id}"
        f"?api-version={asked.api_version}"
    )


_DEPLOYMENTS: Final = f"{GROUP}/providers/{_TYPE}"
_ONE: Final = f"{_DEPLOYMENTS}/{{deployment}}"
_STEPS: Final = f"{GROUP}/deployments/{{deployment}}/operations"
"""Azure's own spelling: without the provider."""


def _taking_template(method: str, path: str, answer: Answer) -> Operation:
    return Operation(
        method=method, path=path, answer=answer, needs=Role.ADMIN, content=Content.DEPLOYMENT
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    _taking_template("PUT", _ONE, put_deployment),
    _taking_template("POST", f"{_ONE}/validate", validate),
    _taking_template("POST", f"{_ONE}/whatIf", what_if),
    Operation(
        method="POST",
        path=f"{_ONE}/exportTemplate",
        answer=asking(export),
        needs=Role.ADMIN,
        content=Content.OPTIONAL,
    ),
    read(_STEPS, list_steps),
    read(f"{_STEPS}/{{operation}}", show_step),
    read(_ONE, show),
    head(_ONE, check),
    delete(_ONE, delete_deployment),
    read(_DEPLOYMENTS, list_in_group),
)
