"""Refusals that concern subscriptions."""

from forewarned.core.errors import Category, RefusalError


class UnknownSubscriptionError(RefusalError, category=Category.NOT_FOUND, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is no subscription {name!r}")
        self.name = name


class SubscriptionExistsError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is already a subscription {name!r}: change it, or choose another name"
        )
        self.name = name


class BadSubscriptionNameError(RefusalError, category=Category.INVALID, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name[:100]!r} is not a name for a subscription: expected 1 to 63 lower-case letters,"
            " digits, '-', '_' and '.', the first of them a letter or a digit"
        )
        self.name = name


class SubscriptionOfSettingsError(RefusalError, category=Category.CONFLICT, field="name"):
    """What the settings file says would come back at the next start."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"subscription {name!r} is defined in the settings file: change it there, under"
            " [[subscriptions]], and restart the server"
        )
        self.name = name


class SecretInFileError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"subscription {name!r} has no secret to replace: its secrets are in a file, or its"
            " target uses none"
        )
        self.name = name


class SecretReplacedError(RefusalError, category=Category.CONFLICT, field="name"):
    """The caller wanted another one replaced, which may be all that a receiver knows."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the secret of subscription {name!r} has been rotated since this page was opened:"
            " rotate it again only if its receiver already knows the newest one. If you did not"
            " see it: pause the subscription, rotate again, give the secret to the receiver, then"
            " resume"
        )
        self.name = name


class TooManySubscriptionsError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, most: int) -> None:
        super().__init__(f"there are already {most} subscriptions, the maximum: remove some")
        self.most = most


class BadTemplateError(ValueError):
    """A template that can't be used, or that fails for a message. Names the line."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {why}" if line else why)
        self.line = line
