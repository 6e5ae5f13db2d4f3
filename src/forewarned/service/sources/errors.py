"""Refusals that concern sources."""

from forewarned.core.errors import Category, RefusalError


class UnknownSourceError(RefusalError, category=Category.NOT_FOUND, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(f"no source {name!r} has reported a listing yet")
        self.name = name
