"""What the function of every page is given, and the one shape of these functions."""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from forewarned.console.actions import Caused
from forewarned.console.errors import FORM_REFUSED
from forewarned.console.forms import FieldError, Form, read_form
from forewarned.console.preview import Preview, preview_of
from forewarned.console.rendering import Pages, visitor
from forewarned.console.services import ConsoleServices
from forewarned.console.timeline.lanes import Sketches
from forewarned.console.unread_count import UnreadCount
from forewarned.control.http import bodies
from forewarned.core.errors import RefusalError
from forewarned.core.model import Actor
from forewarned.security.identities import Role
from forewarned.service.azure.models.documents import InvalidPropertyError
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.ports import Snapshot
from forewarned.service.use_cases import UseCases

T = TypeVar("T")


class Visit(NamedTuple):
    """A request for a page, and what pages are made with."""

    services: ConsoleServices
    pages: Pages
    sketches: Sketches
    unread: UnreadCount
    request: Request

    @property
    def use_cases(self) -> UseCases:
        return self.services.use_cases

    @property
    def address(self) -> str:
        return bodies.address(self.request)

    @property
    def by(self) -> Actor:
        principal = visitor(self.request)
        name = "console" if principal is None else principal.name
        return Actor(name=name, address=self.address)

    @property
    def query(self) -> Form:
        return Form(self.request.query_params.multi_items())

    @property
    def find(self) -> str:
        """What is looked for in a list; empty for all."""
        return self.query.text("find")

    @property
    def page_number(self) -> int:
        """Of a list in pages, counted from 1: what is no number is the first."""
        text = self.request.query_params.get("page", "1")
        return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 7 else 1

    def named(self, name: str) -> str:
        """What the address has in the place of this name."""
        found: str = self.request.path_params[name]
        return found

    async def form(self) -> Form:
        """What was sent. Raises FieldError."""
        return await read_form(self.request)

    async def ask(self, question: Callable[[Snapshot], T]) -> T:
        return await self.services.engine.ask(question)

    async def admit(self, needs: Role) -> None:
        """Before anything of a page is done. Raises AccessError."""
        if self.services.sessions is not None:
            await self.services.sessions.require(
                visitor(self.request), address=self.address, needs=needs
            )

    async def is_still_admitted(self, needs: Role) -> bool:
        """Asked now and then where an answer is long: tokens are revoked, and expire."""
        if self.services.sessions is None:
            return True
        try:
            holder = await self.services.sessions.holder(self.request)
        except StoreUnavailableError:
            return False
        return holder is not None and holder.role.covers(needs)

    def page(
        self,
        template: str,
        *,
        errors: Mapping[str, str] | None = None,
        is_refused: bool = False,
        **shown: Any,  # whatever the template names
    ) -> Response:
        """`errors` are by field of the page's form. With any, the page says what was refused."""
        status = FORM_REFUSED if errors or is_refused else HTTPStatus.OK
        return self.pages.page(self.request, template, status=status, errors=errors or {}, **shown)

    def preview(self, caused: Caused, *, given: object = ()) -> Preview:
        return preview_of(caused, now=self.use_cases.clock_control.show().now, given=given)


Answer = Callable[[Visit], Coroutine[Any, Any, Response]]

REFUSED = (FieldError, RefusalError)
"""What is shown beside a field."""

# The rules' names for fields, where a form has another.
_FIELDS = {"resources": "vms", "instanceIds": "vms", "resourceGroup": "group", "event_id": ""}

# Properties of a scale set, by how their paths end, and the fields of a form that they come from.
_PROPERTIES = (
    ("vmScaleSetName", "name"),
    ("resourceGroupName", "new_group"),
    ("sku.capacity", "capacity"),
    ("sku.name", "size"),
    ("notBeforeTimeout", "delay"),
    ("enable", "notified"),
    ("priority", "spot"),
    ("singlePlacementGroup", "capacity"),
)


def see(path: str) -> Response:
    """After a form: the page to look at next, which a reload does not send again."""
    return RedirectResponse(path, status_code=HTTPStatus.SEE_OTHER)


def count_pages(found: int, per_page: int) -> int:
    return -(-found // per_page)


def own_path(text: str) -> str:
    """A page of ours to go to next; the first page instead of anything that might not be ours."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if is_ours and text.isprintable() else "/"


def mistakes(error: Exception, known: frozenset[str]) -> dict[str, str]:
    """By field of the form; that of the whole form is the empty one."""
    field = getattr(error, "field", "") or ""
    if isinstance(error, InvalidPropertyError):
        field = next((name for path, name in _PROPERTIES if error.path.endswith(path)), "")
    field = _FIELDS.get(field, field)
    return {field if field in known else "": str(error)}
