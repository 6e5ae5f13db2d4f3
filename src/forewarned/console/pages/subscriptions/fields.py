"""The fields of a subscription's form: its target, its shape and its filter, as people type them.

Invariant: the field of the URL, which may hold a secret, is never filled in from the store.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from forewarned.console.forms import FieldError, Form, same_breaks
from forewarned.core.model import EventSource, EventType
from forewarned.service.subscriptions.model import (
    MOST_PATTERNS,
    Filter,
    PublishedStatus,
    Subscription,
)
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.tables import (
    AppriseTable,
    ShapeTable,
    WebhookTable,
    refuse_bad_certificates,
    refuse_misfit,
)
from forewarned.service.subscriptions.targets import TargetSpec, Webhook
from forewarned.targets.urls import check_content_type, is_http

_SHAPE: Final = ("shape", "template", "content_type", "every_scope")
_FILTER: Final = ("types", "statuses", "sources", "scopes", "vms")
EDITABLE: Final = frozenset({"url", "ca", *_SHAPE, *_FILTER})
CHOICES: Final = {
    "shapes": tuple(ShapeName),
    "types": tuple(EventType),
    "statuses": tuple(PublishedStatus),
    "sources": tuple(EventSource),
}


class Edited(NamedTuple):
    """None stands for what was not edited."""

    target: TargetSpec | None
    shape: Shape | None
    filter: Filter | None


def declared(form: Form) -> Declared:
    """Raises FieldError."""
    name = form.text("name")
    if not name:
        raise FieldError("enter a name", field="name")
    target, shape = _target(form, None), _shape(form)
    _refuse_misfit(target, shape)
    return Declared(name=name, target=target, shape=shape, filter=_filter(form))


def edited(form: Form, former: Subscription) -> Edited:
    """What was edited since the form was shown: someone else may have changed the rest.

    Raises FieldError.
    """
    is_target_edited = bool(form.text("url")) or _is_edited(form, "was_ca", ("ca",))
    found = Edited(
        target=_target(form, former.target) if is_target_edited else None,
        shape=_shape(form) if _is_edited(form, "was_shape", _SHAPE) else None,
        filter=_filter(form) if _is_edited(form, "was_filter", _FILTER) else None,
    )
    _refuse_misfit(found.target or former.target, found.shape or former.shape)
    return found


def as_it_is(former: Subscription) -> Form:
    shape, wanted = former.shape, former.filter
    pairs = [
        ("ca", former.target.ca if isinstance(former.target, Webhook) else ""),
        ("shape", shape.name),
        ("template", shape.template),
        ("content_type", shape.content_type if shape.name is ShapeName.TEMPLATE else ""),
        *([("every_scope", "on")] if shape.every_scope else []),
        *(("types", each) for each in wanted.types),
        *(("statuses", each) for each in wanted.statuses),
        *(("sources", each) for each in wanted.sources),
        ("scopes", "\n".join(wanted.scopes)),
        ("vms", "\n".join(wanted.vms)),
    ]
    shown = Form(pairs)
    return Form(
        [
            *pairs,
            ("was_ca", _digest(shown, ("ca",))),
            ("was_shape", _digest(shown, _SHAPE)),
            ("was_filter", _digest(shown, _FILTER)),
        ]
    )


def _is_edited(form: Form, was: str, fields: tuple[str, ...]) -> bool:
    return form.text(was) != _digest(form, fields)


def _digest(form: Form, fields: tuple[str, ...]) -> str:
    """The same for fields as they are shown and as a browser sends them back."""
    # Browsers omit boxes that are not ticked, and send the others in the order of the page.
    texts = [sorted(same_breaks(each) for each in form.texts(name) if each) for name in fields]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _target(form: Form, former: TargetSpec | None) -> TargetSpec:
    """A web service or, by its URL, what Apprise reaches. The former URL stays if none is typed."""
    typed, ca = form.text("url"), form.long_text("ca")
    url = typed or (former.url if former is not None else "")
    if not url:
        raise FieldError("enter the URL that messages are sent to", field="url")
    # Apprise has a few https:// URLs of its own, which only /v1 takes for such.
    is_web = is_http(typed) if typed else isinstance(former, Webhook)
    if not is_web:
        if ca:
            raise FieldError("certificates are for web services only: remove them", field="ca")
        with _beside("url"):
            return AppriseTable(url=url).target()
    with _beside("ca"):
        if ca:
            refuse_bad_certificates(ca)
    with _beside("url"):
        # Without secrets: the use case keeps those that there are, or makes one.
        return WebhookTable(url=url, ca=ca).target()


def _shape(form: Form) -> Shape:
    name = form.choice("shape", ShapeName)
    template, content_type = form.long_text("template"), form.text("content_type")
    every_scope = "every_scope" in form
    _refuse_unless(name, ShapeName.TEMPLATE, "template", template)
    _refuse_unless(name, ShapeName.TEMPLATE, "content_type", content_type)
    _refuse_unless(name, ShapeName.EVENT_GRID, "every_scope", every_scope)
    if name is ShapeName.TEMPLATE and not template:
        raise FieldError("enter the text of the messages", field="template")
    with _beside("content_type"):
        check_content_type(content_type)
    with _beside("template"):
        return ShapeTable(
            kind=name,
            template=template,
            content_type=content_type or None,
            every_scope=every_scope,
        ).shape()


def _refuse_unless(name: ShapeName, needed: ShapeName, field: str, given: object) -> None:
    if given and name is not needed:
        raise FieldError(
            f"this is only for the {needed} shape: choose that shape, or clear this", field=field
        )


def _filter(form: Form) -> Filter:
    return Filter(
        types=form.choices("types", EventType),
        statuses=form.choices("statuses", PublishedStatus),
        sources=form.choices("sources", EventSource),
        scopes=form.lines("scopes", most=MOST_PATTERNS),
        vms=form.lines("vms", most=MOST_PATTERNS),
    )


def _refuse_misfit(target: TargetSpec, shape: Shape) -> None:
    with _beside("shape"):
        refuse_misfit(target, shape)


@contextmanager
def _beside(field: str) -> Iterator[None]:
    """What is refused within is shown beside this field."""
    try:
        yield
    except ValueError as error:
        raise FieldError(str(error), field=field) from error
