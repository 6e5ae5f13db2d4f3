"""What the function of every page is given, and the one shape of these functions."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from forewarned.console.actions import Caused
from forewarned.console.forms import FieldError
from forewarned.console.preview import Preview, preview_of
from forewarned.console.rendering import Pages, address, visitor
from forewarned.console.services import ConsoleServices
from forewarned.console.timeline.lanes import Sketches
from forewarned.core.errors import RefusalError
from forewarned.security.identities import Role
from forewarned.service.azure.models.documents import InvalidPropertyError
from forewarned.service.use_cases import UseCases


class Console(NamedTuple):
    services: ConsoleServices
    pages: Pages
    sketches: Sketches

    @property
    def use_cases(self) -> UseCases:
        return self.services.use_cases

    async def admit(self, request: Request, needs: Role) -> None:
        """Before anything of a page is done. Raises AccessError."""
        if self.services.sessions is not None:
            await self.services.sessions.require(
                visitor(request), address=address(request), needs=needs
            )

    def page(
        self,
        request: Request,
        template: str,
        *,
        errors: Mapping[str, str] | None = None,
        is_refused: bool = False,
        **shown: Any,  # whatever the template names
    ) -> Response:
        """`errors` are by field of the page's form. With any, the page says what was refused."""
        status = HTTPStatus.BAD_REQUEST if errors or is_refused else HTTPStatus.OK
        return self.pages.page(request, template, status=status, errors=errors or {}, **shown)

    def preview(self, caused: Caused, *, given: object = ()) -> Preview:
        return preview_of(caused, now=self.use_cases.clock_control.show().now, given=given)


Answer = Callable[[Console, Request], Awaitable[Response]]

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


def page_number(request: Request) -> int:
    """Of a list in pages, counted from 1: what is no number is the first."""
    text = request.query_params.get("page", "1")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 7 else 1


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
