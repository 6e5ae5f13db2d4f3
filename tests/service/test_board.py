from forewarned.core.ids import ScopeId
from forewarned.core.model import Document, Scope, document
from forewarned.service.board import Board
from forewarned.service.records import Commit, PageContent, Saved
from tests.builders import A, B, a_scope, an_event

SCOPE1, SCOPE2 = ScopeId("scope1"), ScopeId("scope2")


def a_page(scope: Scope, *, revision: int) -> PageContent:
    return PageContent.of(Saved(scope=scope, revision=revision))


class Renderer:
    """Renders a document as its incarnation and version, and remembers how often."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []

    def __call__(self, shown: Document, version: str) -> str:
        self.calls.append((shown.incarnation, version))
        return f"{shown.incarnation} as of {version}"


def test_a_scope_that_was_never_put_has_no_page_rather_than_an_empty_one() -> None:
    """I24."""
    board = Board(Renderer())
    board.show(a_page(a_scope(id="scope1"), revision=1))

    assert board.page(SCOPE2) is None


def test_a_page_shows_the_document_of_its_scope() -> None:
    board = Board(Renderer())
    scope = a_scope(an_event(A), an_event(B, announced=False), incarnation=7)

    board.show(a_page(scope, revision=3))

    page = board.page(SCOPE1)
    assert page is not None
    assert page.document == document(scope)
    assert [event.id for event in page.document.events] == [A]
    assert page.revision == 3
    assert page.is_active


def test_a_page_says_whether_its_scope_is_switched_on() -> None:
    board = Board(Renderer())

    board.show(a_page(a_scope(active=False), revision=1))

    page = board.page(SCOPE1)
    assert page is not None
    assert not page.is_active


def test_a_document_is_rendered_once_for_each_version_that_is_asked_for() -> None:
    """I26."""
    renderer = Renderer()
    board = Board(renderer)
    board.show(a_page(a_scope(incarnation=7), revision=1))

    page = board.page(SCOPE1)

    assert page is not None
    assert renderer.calls == []
    assert [page.rendered(v) for v in ("old", "new", "old")] == [
        "7 as of old",
        "7 as of new",
        "7 as of old",
    ]
    assert renderer.calls == [(7, "old"), (7, "new")]


def test_a_newer_revision_takes_the_place_of_an_older_one() -> None:
    """I25."""
    board = Board(Renderer())
    board.show(a_page(a_scope(incarnation=1), revision=1))

    board.show(a_page(a_scope(incarnation=2), revision=2))

    page = board.page(SCOPE1)
    assert page is not None
    assert page.rendered("new") == "2 as of new"


def test_an_older_revision_that_comes_late_is_not_shown() -> None:
    """I7, I25."""
    board = Board(Renderer())
    board.show(a_page(a_scope(incarnation=2), revision=2))

    board.show(a_page(a_scope(incarnation=1), revision=1))

    page = board.page(SCOPE1)
    assert page is not None
    assert page.document.incarnation == 2


def test_the_same_revision_again_keeps_what_was_rendered() -> None:
    board = Board(Renderer())
    content = a_page(a_scope(), revision=2)
    board.show(content)
    page = board.page(SCOPE1)

    board.show(content)

    assert board.page(SCOPE1) is page


def test_a_commit_puts_every_scope_it_shows_anew() -> None:
    """I10."""
    board = Board(Renderer())

    board.hear(
        Commit(
            shown=(
                a_page(a_scope(id="scope1", incarnation=4), revision=9),
                a_page(a_scope(id="scope2", incarnation=5), revision=3),
            )
        )
    )

    shown = [board.page(scope_id) for scope_id in (SCOPE1, SCOPE2)]
    assert [page and page.document.incarnation for page in shown] == [4, 5]


def test_a_page_that_somebody_holds_does_not_change_under_them() -> None:
    """I10."""
    board = Board(Renderer())
    board.show(a_page(a_scope(incarnation=1), revision=1))
    held = board.page(SCOPE1)

    board.show(a_page(a_scope(incarnation=2), revision=2))

    assert held is not None
    assert held.rendered("new") == "1 as of new"


def test_those_who_wait_hear_of_a_scope_that_is_switched_off() -> None:
    """Or they would wait on for a document of which nobody is told any more."""
    board = Board(Renderer())
    heard: list[ScopeId] = []
    board.watch(heard.append)
    board.show(a_page(a_scope(active=True), revision=1))

    board.show(a_page(a_scope(active=False), revision=2))
    board.show(a_page(a_scope(active=True), revision=3))

    assert heard == [SCOPE1]
