"""Forms for admins: add a subscription, edit one, and rotate its secret.

Invariant: a secret is shown once, in the answer to the form that had it made.
"""

import asyncio
import hashlib

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.forms import Form
from forewarned.console.pages.subscriptions import fields
from forewarned.console.pages.subscriptions.status import path_of
from forewarned.service.subscriptions.errors import (
    SecretInFileError,
    SecretReplacedError,
    SubscriptionOfSettingsError,
)
from forewarned.service.subscriptions.model import Origin, Subscription
from forewarned.service.subscriptions.shapes import ShapeName
from forewarned.service.subscriptions.targets import Webhook

# --- adding --------------------------------------------------------------------------------------


async def show_new(visit: Visit) -> Response:
    return _new(visit, Form([("shape", ShapeName.CLOUDEVENTS)]))


async def send_new(visit: Visit) -> Response:
    form = Form()
    try:
        form = await visit.form()
        # In a thread, here and below: to compile and try a template takes too long for the loop.
        declared = await asyncio.to_thread(fields.declared, form)
        added = await visit.use_cases.subscriptions.add(declared, by=visit.by)
    except REFUSED as refusal:
        return _new(visit, form, mistakes(refusal, fields.EDITABLE | {"name"}))
    if isinstance(added.target, Webhook):
        return _secret(visit, added, "Added.")
    return see(f"{path_of(added.name)}?done=saved")


def _new(visit: Visit, form: Form, errors: dict[str, str] | None = None) -> Response:
    return visit.page("subscription_new.html", form=form, errors=errors, choices=fields.CHOICES)


# --- editing -------------------------------------------------------------------------------------


async def show_edit(visit: Visit) -> Response:
    former = await _own(visit)
    return _edit(visit, former, fields.as_it_is(former))


async def send_edit(visit: Visit) -> Response:
    former = await _own(visit)
    form = fields.as_it_is(former)
    try:
        form = await visit.form()
        edited = await asyncio.to_thread(fields.edited, form, former)
        changed = await visit.use_cases.subscriptions.change(
            former.name, **edited._asdict(), by=visit.by
        )
    except REFUSED as refusal:
        return _edit(visit, former, form, mistakes(refusal, fields.EDITABLE))
    if isinstance(changed.target, Webhook) and not isinstance(former.target, Webhook):
        return _secret(visit, changed, "Saved.")
    return see(f"{path_of(changed.name)}?done=saved")


def _edit(
    visit: Visit, former: Subscription, form: Form, errors: dict[str, str] | None = None
) -> Response:
    return visit.page(
        "subscription_edit.html",
        subscription=former,
        form=form,
        errors=errors,
        choices=fields.CHOICES,
    )


# --- the secret ----------------------------------------------------------------------------------


async def show_rotation(visit: Visit) -> Response:
    return _rotation(visit, await _own(visit))


async def rotate(visit: Visit) -> Response:
    former = await _own(visit)
    newest = _newest_secret(former)
    try:
        form = await visit.form()
        # A form that is sent twice, as by a reload, would end the secret that the receiver knows.
        if form.text("shown") != _digest(newest):
            raise SecretReplacedError(former.name)
        changed = await visit.use_cases.subscriptions.replace_secret(
            former.name, instead_of=newest, by=visit.by
        )
    except REFUSED as refusal:
        return _rotation(visit, await _own(visit), mistakes(refusal, frozenset()))
    return _secret(visit, changed, "The secret was rotated.")


def _rotation(
    visit: Visit, subscription: Subscription, errors: dict[str, str] | None = None
) -> Response:
    return visit.page(
        "subscription_rotate.html",
        subscription=subscription,
        shown=_digest(_newest_secret(subscription)),
        errors=errors,
    )


def _secret(visit: Visit, subscription: Subscription, what: str) -> Response:
    """The only page that shows it: browsers don't store it, and a reload doesn't bring it back."""
    return visit.page(
        "subscription_secret.html",
        subscription=subscription,
        secret=_newest_secret(subscription),
        what=what,
    )


def _newest_secret(subscription: Subscription) -> str:
    """Raises SecretInFileError."""
    if not isinstance(subscription.target, Webhook) or not subscription.target.secrets:
        raise SecretInFileError(subscription.name)
    return subscription.target.secrets[0]


def _digest(secret: str) -> str:
    """Tells secrets apart without showing them."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


async def _own(visit: Visit) -> Subscription:
    """One that the settings file does not manage.

    Raises UnknownSubscriptionError, SubscriptionOfSettingsError.
    """
    view = await visit.use_cases.subscriptions.show(visit.named("name"))
    if view.subscription.origin is Origin.SETTINGS:
        raise SubscriptionOfSettingsError(view.subscription.name)
    return view.subscription
