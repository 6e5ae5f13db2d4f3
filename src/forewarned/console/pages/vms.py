"""One VM as it sees itself, and reading its document in its place."""

import shlex
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from forewarned.console.context import Visit, see
from forewarned.console.pages.fleet import is_behind, models
from forewarned.console.pages.home import OPEN, OVER
from forewarned.console.pages.sets import address_of
from forewarned.console.rendering import indented
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName
from forewarned.core.model import Scope, document
from forewarned.service.azure.inventory import scale_set_id
from forewarned.service.listings import EventFilter
from forewarned.service.ports import Snapshot
from forewarned.service.records import About, Caller, EventRecord

_LISTED: Final = 50


async def show_vm(visit: Visit) -> Response:
    services, name = visit.services, visit.named("name")
    version = visit.query.text("api-version")
    if version not in services.event_versions:
        version = services.event_versions[-1]

    def question(snapshot: Snapshot) -> tuple[About, Scope, list[EventRecord], list[EventRecord]]:
        about = visit.use_cases.activation.about_in(snapshot, name)
        if about is None:
            raise UnknownResourceError(ResourceName(name))
        here = about.binding.name
        return (
            about,
            snapshot.load(about.binding.scope_id),
            snapshot.events(EventFilter(resource=here, statuses=OPEN, limit=_LISTED)),
            snapshot.events(EventFilter(resource=here, statuses=OVER, limit=_LISTED)),
        )

    about, scope, events, past = await visit.ask(question)
    view = await visit.use_cases.fleet.show_scope(scope.id)
    latest = await visit.ask(lambda snapshot: models(snapshot, view))
    profile = about.binding.profile
    return visit.page(
        "vm.html",
        about=about,
        scope=view.scope,
        last_read_by=view.last_read_by,
        set_address=address_of(scale_set_id(profile)) if profile.scale_set else "",
        is_behind=is_behind(profile, latest),
        version=version,
        versions=services.event_versions,
        document=indented(services.show_document(document(scope), version)),
        curl=_curl(visit, about.binding.name, version),
        instance=indented(services.show_instance(about, services.instance_version)),
        instance_version=services.instance_version,
        events=events,
        past=list(reversed(past)),
    )


async def read_as_vm(visit: Visit) -> Response:
    """Activate a VM's scope, as its first read would: an emulator's VMs may not really exist."""
    name = ResourceName(visit.named("name"))
    about = await visit.use_cases.activation.about(name)
    if about is None or not visit.services.is_emulator:
        raise UnknownResourceError(name)
    binding = about.binding
    caller = Caller(name=binding.name, scope_id=binding.scope_id)
    await visit.use_cases.activation.activate(caller, address=visit.address)
    return see(f"/vms/{quote(binding.name, safe='')}")


def _curl(visit: Visit, name: str, version: str) -> str:
    prefix = f"/vm/{quote(name, safe='')}" if visit.services.is_emulator else ""
    url = f"{visit.services.metadata_url}{prefix}/metadata/scheduledevents?api-version={version}"
    return f"curl -H Metadata:true {shlex.quote(url)}"
