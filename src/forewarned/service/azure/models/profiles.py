"""What VMs and scale sets declare alike: `scheduledEventsProfile`, priority, tags, zones, OS.

`read_…` takes what is stored, which may come from a fleet file and be more than Azure has:
locations, sizes and zones of any name. `refuse_…` is for what a client changes, so that a client
may always send back what it was shown.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.config.durations import InvalidDurationError, parse_duration
from forewarned.core.model import EvictionPolicy, Priority
from forewarned.core.notice import DEFAULT_TERMINATE, LONGEST_TERMINATE
from forewarned.service.azure.models.documents import (
    Fields,
    InvalidPropertyError,
    Json,
    decoded,
    put_at,
)
from forewarned.service.fleet.declaration import Model
from forewarned.service.records import Declaration

EVENTS_PROFILE: Final = "scheduledEventsProfile"
USUAL_SIZE: Final = "Standard_D2s_v5"

_TERMINATE: Final = "terminateNotificationProfile"
_IMAGE: Final = "osImageNotificationProfile"
_ENABLE: Final = "enable"
_TIMEOUT: Final = "notBeforeTimeout"
_IMAGE_NOTICE: Final = timedelta(minutes=15)
"""The only one that Azure accepts."""
_MOST_TAGS: Final = 50
_LONGEST_TAG_NAME: Final = 512
_LONGEST_TAG: Final = 256
_PRIORITIES: Final = {"regular": "Regular", "spot": "Spot", "low": "Spot"}
"""Low is what Spot was called until 2019."""
_EVICTION_POLICIES: Final = {"deallocate": "Deallocate", "delete": "Delete"}
_OS_TYPES: Final = {"linux": "Linux", "windows": "Windows"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """None where the VM gets no notice."""

    terminate: timedelta | None = None
    image: timedelta | None = None


# --- scheduledEventsProfile ----------------------------------------------------------------------


def read_notices(holder: Fields, *, priority: Priority) -> Notices:
    """Of a VM's `properties`, or a set's `virtualMachineProfile`."""
    profile = holder.object(EVENTS_PROFILE)
    terminate, image = profile.object(_TERMINATE), profile.object(_IMAGE)
    timeout, image_timeout = _timeout(terminate), _image_timeout(image)
    is_told = bool(terminate.flag(_ENABLE))
    if is_told and priority is Priority.SPOT:
        raise InvalidPropertyError(
            terminate.where(_ENABLE), "Terminate notifications are not supported for Spot VMs."
        )
    return Notices(
        terminate=timeout if is_told else None,
        image=image_timeout if image.flag(_ENABLE) else None,
    )


def settle_notices(document: Json, holder: Fields) -> None:
    """Give what the profile declares the type it is shown in, and say what is left out.

    `holder` is that part of the document which the profile is in.
    """
    profile = holder.object(EVENTS_PROFILE)
    for part, usual in ((_TERMINATE, DEFAULT_TERMINATE), (_IMAGE, _IMAGE_NOTICE)):
        here = profile.object(part)
        is_told = here.flag(_ENABLE)
        if is_told is None:
            continue
        put_at(document, here.where(_ENABLE), is_told)
        if is_told and _TIMEOUT not in here:
            put_at(document, here.where(_TIMEOUT), show_duration(usual))


def show_notices(notices: Notices) -> Json | None:
    """For a resource whose notices came with the fleet; None for none."""
    shown: Json = {}
    for part, notice in ((_TERMINATE, notices.terminate), (_IMAGE, notices.image)):
        if notice is not None:
            shown[part] = {_ENABLE: True, _TIMEOUT: show_duration(notice)}
    return shown or None


def show_termination(notice: timedelta | None, *, is_on: bool) -> Json:
    """As a client would send it; None takes the default notice."""
    terminate: Json = {_ENABLE: is_on}
    if is_on and notice is not None:
        terminate[_TIMEOUT] = show_duration(notice)
    return {_TERMINATE: terminate}


def show_duration(span: timedelta) -> str:
    """`PT5M`, as Azure writes these durations: in minutes, and seconds if there are any."""
    minutes, rest = divmod(span, timedelta(minutes=1))
    seconds = f"{rest.seconds}.{rest.microseconds:06}".rstrip("0").rstrip(".")
    return "PT" + (f"{minutes}M" if minutes else "") + (f"{seconds}S" if rest else "")


def refuse_notices(news: Fields) -> None:
    """`news` is of a VM's `properties`, or a set's `virtualMachineProfile`."""
    profile = news.object(EVENTS_PROFILE)
    for part in (profile.object(_TERMINATE), profile.object(_IMAGE)):
        given = _duration(part)
        if given is not None and given % timedelta(seconds=1):
            raise part.wrong(_TIMEOUT, "expected whole seconds")


def _timeout(terminate: Fields) -> timedelta:
    given = _duration(terminate)
    if given is None:
        return DEFAULT_TERMINATE
    if not DEFAULT_TERMINATE <= given <= LONGEST_TERMINATE:
        raise terminate.wrong(_TIMEOUT, "expected a duration from PT5M to PT15M")
    return given


def _image_timeout(image: Fields) -> timedelta:
    given = _duration(image)
    if given is not None and given != _IMAGE_NOTICE:
        raise image.wrong(_TIMEOUT, "expected PT15M")
    return _IMAGE_NOTICE


def _duration(holder: Fields) -> timedelta | None:
    text = holder.text(_TIMEOUT)
    if text is None:
        return None
    # `5m`, which the rest of this server accepts, is not one of Azure's forms.
    if text.startswith("P"):
        with suppress(InvalidDurationError):
            return parse_duration(text)
    raise holder.wrong(_TIMEOUT, "expected an ISO 8601 duration such as PT5M")


# --- the rest ------------------------------------------------------------------------------------


def read_model(resource: Fields, holder: Fields, *, size: str | None) -> Model:
    """Of a VM, or of a set's VMs. `holder` is its `properties`, or their profile."""
    priority = read_priority(holder)
    notices = read_notices(holder, priority=priority)
    return Model(
        size=USUAL_SIZE if size is None else size,
        os_type=read_os_type(holder),
        priority=priority,
        eviction_policy=read_eviction_policy(holder),
        terminate_notice=notices.terminate,
        image_notice=notices.image,
        tags=read_tags(resource),
    )


def read_priority(holder: Fields) -> Priority:
    return Priority(holder.one_of("priority", _PRIORITIES) or Priority.REGULAR)


def read_eviction_policy(holder: Fields) -> EvictionPolicy:
    given = holder.one_of("evictionPolicy", _EVICTION_POLICIES)
    return EvictionPolicy(given or EvictionPolicy.DEALLOCATE)


def read_os_type(holder: Fields) -> str:
    """As the disk says, else the settings of one of the two systems; Linux if nothing says."""
    given = _os_disk(holder).word("osType")
    if given is not None:
        return _OS_TYPES.get(given.lower(), given)
    return "Windows" if "windowsConfiguration" in holder.object("osProfile") else "Linux"


def refuse_os_type(news: Fields) -> None:
    """`news` is of a VM's `properties`, or a set's `virtualMachineProfile`."""
    _os_disk(news).one_of("osType", _OS_TYPES)


def _os_disk(holder: Fields) -> Fields:
    return holder.object("storageProfile").object("osDisk")


def read_tags(resource: Fields) -> dict[str, str]:
    tags = resource.object("tags")
    return {name: tags.word(name) or "" for name in tags}


def refuse_tags(news: Fields, resource: Fields) -> None:
    """`resource` is the whole document, of which `news` is the changed part."""
    tags = news.object("tags")
    if list(tags) and len(list(resource.object("tags"))) > _MOST_TAGS:
        raise InvalidPropertyError("tags", f"A resource can have at most {_MOST_TAGS} tags.")
    for name in tags:
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_TAG_NAME:
            raise InvalidPropertyError("tags", f"The tag name '{name[:60]}' is invalid.")
        tags.text(name, longest=_LONGEST_TAG)


def new_tags(resource: Fields) -> dict[str, str]:
    """For a resource that is stored as the client sent it."""
    refuse_tags(resource, resource)
    return read_tags(resource)


def read_zones(resource: Fields) -> tuple[str, ...]:
    return resource.texts("zones") or ()


def refuse_zones(news: Fields) -> None:
    zones = read_zones(news)
    if len(set(zones)) < len(zones) or not all(
        zone.isascii() and zone.isdecimal() and len(zone) == 1 for zone in zones
    ):
        raise news.wrong("zones", "expected different zones such as '1', '2' and '3'")


def read_location(resource: Fields, *, here: str | None = None) -> str | None:
    """Lower case, without blanks: `West US` is `westus`. None where none is given.

    `here` is where the resource is already: its own spelling stays, however clients write it.
    """
    given = resource.word("location")
    if given is None:
        return None
    location = given.replace(" ", "").lower()
    if here is not None and here.replace(" ", "").lower() == location:
        return here
    resource.text("location", longest=64)
    if not location.isascii() or not location.replace("-", "").isalnum():
        raise resource.wrong("location", "expected the name of a location such as westeurope")
    return location


def stored_location(declaration: Declaration | None) -> str | None:
    """As it is declared, in whatever spelling."""
    return Fields(decoded(declaration)).word("location")
