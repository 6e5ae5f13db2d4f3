"""Answers to the requests of VMs.

A poll of an active scope is answered at once, from the Board alone. Anything that needs the store
is answered later, and a change only after the store has committed it.
"""

import asyncio
import logging
import math
from http import HTTPStatus
from math import inf
from typing import Final

from forewarned.core.errors import RefusalError, UnknownEventError
from forewarned.core.model import Document
from forewarned.metadata import errors, identity, instance, readiness, routes, wire
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.limits import RateLimit
from forewarned.metadata.http.peers import Identity, Peer, end_delay
from forewarned.metadata.http.responses import APPROVED, JSON, TEXT, DateLine, Rendered, Response
from forewarned.metadata.http.waiting import Wait
from forewarned.metadata.options import Options
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.metadata.routes import (
    Approve,
    Format,
    ReadEvents,
    ReadInstance,
    ReadReadiness,
    ReadToken,
    ReadVersions,
    ReportReadiness,
    RoutedRequest,
)
from forewarned.security.identities import LOCAL_USER, Bearer, TokensUnavailableError
from forewarned.service.board import Board, Page
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.ports import Clock, Timer
from forewarned.service.readiness import Readiness
from forewarned.service.records import Caller
from forewarned.service.requests.ports import Approver, Directory, Reader, TokenIssuer

_log = logging.getLogger(__name__)

NOT_YET: Final = Response(HTTPStatus.ACCEPTED, None)
"""Stands for a poll that waits: see `Answers.wait_of`. Never sent."""

_VERSIONS: Final = Response(HTTPStatus.OK, instance.VERSIONS, {"Content-Type": JSON})
# Made once: while documents are missing, all VMs of the fleet ask for theirs.
UNAVAILABLE: Final = errors.refused(errors.UNAVAILABLE)


class Answers:
    def __init__(
        self,
        *,
        board: Board[Rendered],
        directory: Directory,
        identity: Identity,
        reader: Reader,
        approver: Approver,
        clock: Clock,
        counts: Counts,
        date_line: DateLine,
        rate_limit: RateLimit | None,
        options: Options,
        issuer: TokenIssuer | None = None,
        readiness: Readiness | None = None,
    ) -> None:
        """Without an `issuer` or `readiness`, the endpoint that needs it answers 404."""
        self._board = board
        self._identity = identity
        self._directory = directory
        self._reader = reader
        self._approver = approver
        self._clock = clock
        self._counts = counts
        self._date_line = date_line
        self._rate_limit = rate_limit
        self._issuer = issuer
        self._readiness = readiness
        self._first_call_delay = options.first_call_delay
        self._review_at = inf
        """When to see whether pages may still be shown: at a node among several only."""

    def at_once(self, request: RoutedRequest, peer: Peer, now: float) -> Response | None:
        """None if the answer needs the store (call `later`); NOT_YET for a poll that waits."""
        try:
            if now >= self._review_at:
                self._review(now)
            # The caller is looked up once per connection, and again when the fleet has changed.
            if request.vm is None and peer.generation == self._directory.generation:
                caller = peer.caller
            else:
                caller = self._identity.caller(peer, request.vm)
            # Every request counts against the rate, refused ones too.
            if caller is not None and self._rate_limit is not None:
                bucket = peer.bucket if request.vm is None else None
                if bucket is None:
                    bucket = self._rate_limit.bucket(caller.name)
                if request.vm is None:
                    peer.bucket = bucket
                wait = self._rate_limit.take(bucket, now)
                if wait:
                    return _too_many(wait, request)
            operation = request.operation
            if not isinstance(operation, ReadEvents):
                return _for_any_caller(request)
            if caller is None:
                return self._unknown(request, peer)
            if request.vm is not None:
                page = self._board.page(caller.scope_id)
                return self._withheld(caller, peer) or self._read(operation, caller, page)
            # The page is remembered as well, until the Board has changed.
            if peer.page_generation != self._board.generation:
                return self._look_up(operation, caller, peer)
            return self._read(operation, caller, peer.page)
        except Exception:  # noqa: BLE001  # a defect of ours must not leave a VM without an answer
            _log.exception("a request failed")
            return errors.refused(errors.FAILED, is_head=request.is_head)

    def _look_up(self, operation: ReadEvents, caller: Caller, peer: Peer) -> Response | None:
        withheld = self._withheld(caller, peer)
        if withheld is not None:
            return withheld
        peer.page = self._board.page(caller.scope_id)
        peer.page_generation = self._board.generation
        return self._read(operation, caller, peer.page)

    def _read(
        self, operation: ReadEvents, caller: Caller, page: Page[Rendered] | None
    ) -> Response | None:
        if page is None:
            # Stale, never empty: an empty document would say that every event is over.
            return UNAVAILABLE
        if not page.is_active:
            return None
        # Of several reads in the same second, and so with the same Date, one is recorded.
        if page.last_read is not self._date_line.text:
            self._note(page, caller)
        if operation.wait is not None and not _is_news(operation.wait, page.document):
            self._counts.waits += 1
            return NOT_YET
        rendered = page.rendered(operation.version)
        if operation.known_tags and rendered.matches(operation.known_tags):
            self._counts.unmodified += 1
            return rendered.unmodified
        self._counts.documents += 1
        return rendered.document

    def _review(self, now: float) -> None:
        """Called with the first request after `_review_at`."""

    def _unknown(self, request: RoutedRequest, peer: Peer) -> Response:
        """The answer to a caller that is no VM of the fleet."""
        return errors.refused(self._identity.refusal(peer, request.vm))

    def _withheld(self, caller: Caller, peer: Peer) -> Response | None:  # noqa: ARG002
        """What to answer instead of a document that the caller must not be shown yet."""
        return None

    def _note(self, page: Page[Rendered], caller: Caller) -> None:
        page.last_read = self._date_line.text
        self._reader.seen(caller.scope_id, caller.name)

    def wait_of(self, request: RoutedRequest, peer: Peer, now: float) -> Wait:
        """What a long poll waits for, and until when."""
        caller = self._identity.caller(peer, request.vm)
        operation = request.operation
        if caller is None or not isinstance(operation, ReadEvents) or operation.wait is None:
            raise AssertionError("not a long poll")
        return Wait(caller.scope_id, now + operation.wait.seconds)

    def after_wait(self, request: RoutedRequest, peer: Peer, _: Wait) -> Response | None:
        """The wait is over. Answers as `at_once` does."""
        return self.current(request, peer)

    def current(self, request: RoutedRequest, peer: Peer) -> Response:
        """The document as it is now, changed or not."""
        try:
            if request.vm is None and peer.generation == self._directory.generation:
                caller = peer.caller
            else:
                caller = self._identity.caller(peer, request.vm)
            if caller is None or not isinstance(request.operation, ReadEvents):
                return errors.refused(self._identity.refusal(peer, request.vm))
            page = self._board.page(caller.scope_id)
            if page is None:
                return UNAVAILABLE
            if page.last_read is not self._date_line.text:
                self._note(page, caller)
            self._counts.documents += 1
            # A wait always ends with a document, so that the client has the current one.
            return page.rendered(request.operation.version).document
        except Exception:  # noqa: BLE001  # as above
            _log.exception("a request failed")
            return errors.refused(errors.FAILED)

    def from_page(self, page: Page[Rendered], operation: ReadEvents) -> Response:
        """The document of a page that may not be the newest."""
        self._counts.documents += 1
        rendered = page.rendered(operation.version)
        is_known = bool(operation.known_tags) and rendered.matches(operation.known_tags)
        return rendered.unmodified if is_known else rendered.document

    async def later(self, request: RoutedRequest, peer: Peer) -> Response:
        caller = self._identity.caller(peer, request.vm)
        if caller is None:
            return await self._without_caller(request, peer)
        try:
            match request.operation:
                case ReadEvents():
                    return await self._activate(request.operation, caller, peer)
                case Approve():
                    return await self._approve(request.operation, caller, peer)
                case ReadInstance():
                    return await self._instance(request.operation, caller)
                case ReadToken():
                    return await self._token(request.operation, caller)
                case ReadReadiness() | ReportReadiness():
                    return await self._answer_readiness(request.operation, caller)
                case ReadVersions() | Refusal():
                    raise AssertionError("answered at once")
        except StoreUnavailableError:
            return UNAVAILABLE
        except TokensUnavailableError:
            _log.exception("no token can be issued")
            return UNAVAILABLE
        except RefusalError as error:
            return errors.refused_by_rules(error)

    async def _without_caller(self, request: RoutedRequest, peer: Peer) -> Response:
        refusal = self._identity.refusal(peer, request.vm)
        if not isinstance(request.operation, ReadToken):
            return errors.refused(refusal)
        if request.vm is not None or not self._identity.may_choose(peer):
            return errors.refused(routes.in_oauth_words(refusal))
        # A developer's `az` asks here too, and must be able to create the first VM.
        try:
            return await self._issued(request.operation, LOCAL_USER)
        except TokensUnavailableError:
            _log.exception("no token can be issued")
            return UNAVAILABLE

    async def _activate(self, operation: ReadEvents, caller: Caller, peer: Peer) -> Response:
        await self._reader.activate(caller, address=peer.address)
        if self._first_call_delay:
            await peer.sit_out(self._end_first_call)
        # The scope may be gone, or this node may not know of the activation yet. Either way there
        # is no document that is known to be current.
        return self._read(operation, caller, self._board.page(caller.scope_id)) or UNAVAILABLE

    def _end_first_call(self, over: "asyncio.Future[None]") -> Timer:
        async def end() -> None:
            end_delay(over)

        return self._clock.at(self._clock.now() + self._first_call_delay, end)

    async def _approve(self, operation: Approve, caller: Caller, peer: Peer) -> Response:
        try:
            event_ids = wire.start_requests(operation.body)
        except wire.BadBodyError as error:
            return _refused(Reason.BAD_BODY, f"Bad request: {error}")
        await self._approver.approve(event_ids, caller=caller, address=peer.address)
        self._counts.approvals += 1
        return APPROVED

    async def _instance(self, operation: ReadInstance, caller: Caller) -> Response:
        about = await self._reader.about(caller.name)
        if about is None:
            return UNAVAILABLE
        try:
            body = instance.answer(about, operation)
        except instance.NoSuchElementError:
            return _refused(
                Reason.UNKNOWN_PATH,
                "Not found. The instance document of this version has no such element.",
            )
        except instance.LeafFormatError:
            return _refused(
                Reason.WRONG_FORMAT,
                "Bad request. A single value is served as text: add format=text.",
            )
        kind = TEXT if operation.format is Format.TEXT else JSON
        return Response(HTTPStatus.OK, body, {"Content-Type": kind})

    async def _token(self, operation: ReadToken, caller: Caller) -> Response:
        about = await self._reader.about(caller.name)
        if about is None:
            return UNAVAILABLE
        return await self._issued(operation, identity.bearer(about))

    async def _issued(self, operation: ReadToken, bearer: Bearer) -> Response:
        if self._issuer is None:
            return _refused(Reason.UNKNOWN_PATH, "Not found. This server issues no tokens.")
        token = await self._issuer.issue(bearer, audience=operation.audience)
        body = identity.answer(operation, bearer, token)
        return Response(HTTPStatus.OK, body, {"Content-Type": JSON, "Cache-Control": "no-store"})

    async def _answer_readiness(
        self, operation: ReadReadiness | ReportReadiness, caller: Caller
    ) -> Response:
        if self._readiness is None:
            return _refused(Reason.UNKNOWN_PATH, "Not found. This server tracks no readiness.")
        event_id = operation.event_id
        try:
            reports = (
                await self._readiness.report(event_id, operation.standing, caller=caller)
                if isinstance(operation, ReportReadiness)
                else await self._readiness.reports(event_id, caller=caller)
            )
        except UnknownEventError:
            # Not `refused_by_rules`: for approvals the same error has another status.
            return _refused(
                Reason.UNKNOWN_EVENT, f"Not found. No event {event_id} is open in this scope."
            )
        body = readiness.answer(event_id, reports)
        return Response(HTTPStatus.OK, body, {"Content-Type": JSON})


def _for_any_caller(request: RoutedRequest) -> Response | None:
    """The answer that is the same for every caller; None if there is none."""
    if isinstance(request.operation, Refusal):
        return errors.refused(request.operation, is_head=request.is_head)
    return _VERSIONS if isinstance(request.operation, ReadVersions) else None


def _refused(reason: Reason, message: str) -> Response:
    return errors.refused(Refusal(reason=reason, message=message))


def _is_news(wait: routes.Wait, document: Document) -> bool:
    return wait.last_incarnation is not None and wait.last_incarnation != document.incarnation


def _too_many(wait: float, request: RoutedRequest) -> Response:
    refusal = Refusal(
        reason=Reason.TOO_MANY_REQUESTS,
        message="Too many requests. Slow down.",
        retry_after=math.ceil(wait),
    )
    return errors.refused(refusal, is_head=request.is_head)
