"""The documents as VMs read them, in memory, rendered once per change and api-version.

A poll reads this and nothing else. Invariant: the Board shows committed
documents only, and for one scope never an older one after a newer one.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from forewarned.core.ids import ScopeId
from forewarned.core.model import Document
from forewarned.service.records import Commit, PageContent

Rendered = TypeVar("Rendered")


class Page(Generic[Rendered]):
    """One scope's document, with its renderings kept as they are asked for."""

    __slots__ = (
        "_asked",
        "_found",
        "_render",
        "_rendered",
        "document",
        "is_active",
        "last_read",
        "revision",
    )

    def __init__(self, content: PageContent, render: Callable[[Document, str], Rendered]) -> None:
        self.document = content.document
        self.is_active = content.is_active
        self.revision = content.revision
        self.last_read: object = None
        """For readers of the page, to tell one read from the next."""
        self._render = render
        self._rendered: dict[str, Rendered] = {}
        self._asked = ""
        self._found: Rendered | None = None
        """The last one asked for: most scopes are read in one api-version only."""

    def rendered(self, version: str) -> Rendered:
        if self._found is not None and version is self._asked:
            return self._found
        found = self._rendered.get(version)
        if found is None:
            found = self._rendered[version] = self._render(self.document, version)
        self._asked, self._found = version, found
        return found


class Board(Generic[Rendered]):
    def __init__(self, render: Callable[[Document, str], Rendered]) -> None:
        self._render = render
        self._pages: dict[ScopeId, Page[Rendered]] = {}
        self._watchers: list[Callable[[ScopeId], None]] = []
        self.generation = 0
        """Moves whenever any page may have changed, or who may be shown it."""
        self.page: Callable[[ScopeId], Page[Rendered] | None] = self._pages.get
        """None if the Board has no document: answer 503 then, never an empty document."""

    def show(self, content: PageContent) -> None:
        shown = self._pages.get(content.scope_id)
        if shown is not None and shown.revision >= content.revision:
            return
        page = self._pages[content.scope_id] = Page(content, self._render)
        self.generation += 1
        if shown is not None and _is_news(shown, page):
            for watcher in self._watchers:
                watcher(content.scope_id)

    def turn(self) -> None:
        """Make readers that remember their page look it up anew."""
        self.generation += 1

    def pages(self) -> dict[ScopeId, Page[Rendered]]:
        """A copy: the pages as they are now."""
        return dict(self._pages)

    def watch(self, watcher: Callable[[ScopeId], None]) -> None:
        """Call the watcher whenever a scope's VMs would read something else than before.

        Also when the scope is deactivated: VMs that wait have to read again to be given notice.
        """
        self._watchers.append(watcher)

    def hear(self, commit: Commit) -> None:
        for content in commit.shown:
            self.show(content)


def _is_news(shown: Page[Rendered], page: Page[Rendered]) -> bool:
    is_other = shown.document.incarnation != page.document.incarnation
    return is_other or (shown.is_active and not page.is_active)
