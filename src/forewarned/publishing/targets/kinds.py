"""The target of a subscription, ready to deliver to."""

from typing import assert_never

from forewarned.publishing.ports import Target
from forewarned.publishing.targets.apprise import AppriseTarget
from forewarned.publishing.targets.webhook import WebhookTarget
from forewarned.service.subscriptions.model import Subscription
from forewarned.service.subscriptions.targets import Apprise, Webhook
from forewarned.targets.addresses import Reach


def make_target(subscription: Subscription, *, reach: Reach) -> Target:
    """Opens nothing. Raises BadTemplateError for a template that was never checked."""
    match subscription.target:
        case Webhook() as hook:
            return WebhookTarget(subscription, hook, reach=reach)
        case Apprise() as service:
            return AppriseTarget(subscription, service, reach=reach)
        case other:
            assert_never(other)
