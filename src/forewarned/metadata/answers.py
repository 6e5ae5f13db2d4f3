"""Answers to what VMs ask.

A poll of an active scope is answered at once, from the Board alone. Whatever needs the store is
answered later, and only after the store has it.
"""

import asyncio
import logging
import math
from http import HTTPStatus
from typing import Final

from forewarned.core.errors import RefusalError, UnknownEventError
from forewarned.core.model import Document
from forewarned.metadata import errors, identity, instance, readiness, routes, wire
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.limits import RateLimit
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.http.responses import APPROVED, JSON, TEXT, DateLine, Rendered, Response
from forewarned.metadata.http.waiting import Wait
from forewarned.metadata.options import Options
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.metadata.routes import (
    Approve,
    Ask,
    Format,
    ReadEvents,
    ReadInstance,
    ReadReadiness,
    ReadToken,
    ReadVersions,
    ReportReadiness,
)
from forewarned.security.identities import LOCAL_USER, Bearer, TokensUnavailableError
from forewarned.service.board import Board, Page
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.ports import Approver, Clock, Directory, Reader, TokenIssuer
from forewarned.service.readiness import Readiness
from forewarned.service.records import Caller

_log = logging.getLogger(__name__)

HELD: Final = Response(HTTPStatus.ACCEPTED, None)
"""Stands for no answer yet: the poll waits for a change. Never sent."""

_VERSIONS: Final = Response(HTTPStatus.OK, instance.VERSIONS, {"Content-Type": JSON})
# Made once: when there is no document, there are none for anybody, and all of them ask.
_UNAVAILABLE: Final = errors.refused(errors.UNAVAILABLE)


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
        """Without an `issuer`, or `readiness`, there is nothing at the endpoint that needs it."""
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

    def at_once(self, ask: Ask, peer: Peer, now: float) -> Response | None:
        """None where the answer needs the store: `later` gives it then; HELD where it must wait."""
        try:
            # Who calls is looked up once for each connection, and again when the fleet has changed.
            if ask.vm is None and peer.generation == self._directory.generation:
                caller = peer.caller
            else:
                caller = self._identity.caller(peer, ask.vm)
            # Whatever a VM sends counts, refused requests too.
            if caller is not None and self._rate_limit is not None:
                bucket = peer.bucket if ask.vm is None else None
                if bucket is None:
                    bucket = self._rate_limit.bucket(caller.name)
                if ask.vm is None:
                    peer.bucket = bucket
                wait = self._rate_limit.take(bucket, now)
                if wait:
                    return _too_many(wait, ask)
            want = ask.want
            if not isinstance(want, ReadEvents):
                return _for_anybody(ask)
            if caller is None:
                return errors.refused(self._identity.refusal(peer, ask.vm))
            if ask.vm is not None:
                return self._read(want, caller, self._board.page(caller.scope_id))
            # Where to look is known as well, until the Board has changed.
            if peer.page_generation != self._board.generation:
                peer.page = self._board.page(caller.scope_id)
                peer.page_generation = self._board.generation
            return self._read(want, caller, peer.page)
        except Exception:  # noqa: BLE001  # a defect of ours must not leave a VM without an answer
            _log.exception("a request failed")
            return errors.refused(errors.FAILED, is_head=ask.is_head)

    def _read(
        self, want: ReadEvents, caller: Caller, page: Page[Rendered] | None
    ) -> Response | None:
        if page is None:
            # An empty document would say that every event is over.
            return _UNAVAILABLE
        if not page.is_active:
            return None
        # Of several readings in the same second, and so at the same Date, one is noted.
        if page.last_read is not self._date_line.text:
            self._note(page, caller)
        if want.wait is not None and not _is_news(want.wait, page.document):
            self._counts.waits += 1
            return HELD
        rendered = page.rendered(want.version)
        if want.known_tags and rendered.matches(want.known_tags):
            self._counts.unmodified += 1
            return rendered.unmodified
        self._counts.documents += 1
        return rendered.document

    def _note(self, page: Page[Rendered], caller: Caller) -> None:
        page.last_read = self._date_line.text
        self._reader.seen(caller.scope_id, caller.name)

    def wait_of(self, ask: Ask, peer: Peer, now: float) -> Wait:
        """What a held poll waits for, and how long."""
        caller = self._identity.caller(peer, ask.vm)
        if caller is None or not isinstance(ask.want, ReadEvents) or ask.want.wait is None:
            raise AssertionError("only polls that wait are held")
        return Wait(caller.scope_id, now + ask.want.wait.seconds)

    def after_wait(self, ask: Ask, peer: Peer) -> Response:
        """The document as it is now, changed or not: the wait is over."""
        try:
            if ask.vm is None and peer.generation == self._directory.generation:
                caller = peer.caller
            else:
                caller = self._identity.caller(peer, ask.vm)
            if caller is None or not isinstance(ask.want, ReadEvents):
                return errors.refused(self._identity.refusal(peer, ask.vm))
            page = self._board.page(caller.scope_id)
            if page is None:
                return _UNAVAILABLE
            if page.last_read is not self._date_line.text:
                self._note(page, caller)
            self._counts.documents += 1
            # A wait always ends in a document, so that whoever waited knows where things stand.
            return page.rendered(ask.want.version).document
        except Exception:  # noqa: BLE001  # as above
            _log.exception("a request failed")
            return errors.refused(errors.FAILED)

    def from_page(self, page: Page[Rendered], want: ReadEvents) -> Response:
        """The document of a page that may not be the newest."""
        self._counts.documents += 1
        rendered = page.rendered(want.version)
        is_known = bool(want.known_tags) and rendered.matches(want.known_tags)
        return rendered.unmodified if is_known else rendered.document

    async def later(self, ask: Ask, peer: Peer) -> Response:
        caller = self._identity.caller(peer, ask.vm)
        if caller is None:
            return await self._without_caller(ask, peer)
        try:
            match ask.want:
                case ReadEvents():
                    return await self._activate(ask.want, caller, peer)
                case Approve():
                    return await self._approve(ask.want, caller, peer)
                case ReadInstance():
                    return await self._instance(ask.want, caller)
                case ReadToken():
                    return await self._token(ask.want, caller)
                case ReadReadiness() | ReportReadiness():
                    return await self._tell_readiness(ask.want, caller)
                case ReadVersions() | Refusal():
                    raise AssertionError("answered at once")
        except StoreUnavailableError:
            return _UNAVAILABLE
        except TokensUnavailableError:
            _log.exception("no token can be issued")
            return _UNAVAILABLE
        except RefusalError as error:
            return errors.refused_by_rules(error)

    async def _without_caller(self, ask: Ask, peer: Peer) -> Response:
        refusal = self._identity.refusal(peer, ask.vm)
        if not isinstance(ask.want, ReadToken):
            return errors.refused(refusal)
        if ask.vm is not None or not self._identity.may_choose(peer):
            return errors.refused(routes.in_oauth_words(refusal))
        # A person's `az` asks here too, and must be able to make the first VM, or the next one.
        try:
            return await self._issued(ask.want, LOCAL_USER)
        except TokensUnavailableError:
            _log.exception("no token can be issued")
            return _UNAVAILABLE

    async def _activate(self, want: ReadEvents, caller: Caller, peer: Peer) -> Response:
        await self._reader.activate(caller, address=peer.address)
        if self._first_call_delay:
            await self._sit_out(peer)
        # The scope may be gone, or this node may not have heard of the activation yet. Either way
        # there is nothing to show that is known to be true.
        return self._read(want, caller, self._board.page(caller.scope_id)) or _UNAVAILABLE

    async def _sit_out(self, peer: Peer) -> None:
        over = peer.delay = asyncio.get_running_loop().create_future()

        async def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.at(self._clock.now() + self._first_call_delay, end)
        try:
            await over
        finally:
            timer.cancel()
            peer.delay = None

    async def _approve(self, want: Approve, caller: Caller, peer: Peer) -> Response:
        try:
            event_ids = wire.start_requests(want.body)
        except wire.BadBodyError as error:
            return errors.refused(Refusal(reason=Reason.BAD_BODY, message=f"Bad request: {error}"))
        await self._approver.approve(event_ids, caller=caller, address=peer.address)
        self._counts.approvals += 1
        return APPROVED

    async def _instance(self, want: ReadInstance, caller: Caller) -> Response:
        about = await self._reader.about(caller.name)
        if about is None:
            return _UNAVAILABLE
        try:
            body = instance.answer(about, want)
        except instance.NoSuchElementError:
            return errors.refused(
                Refusal(
                    reason=Reason.UNKNOWN_PATH,
                    message="Not found. The instance document of this version has no such element.",
                )
            )
        except instance.LeafFormatError:
            return errors.refused(
                Refusal(
                    reason=Reason.WRONG_FORMAT,
                    message="Bad request. A single value is served as text: add format=text.",
                )
            )
        kind = TEXT if want.format is Format.TEXT else JSON
        return Response(HTTPStatus.OK, body, {"Content-Type": kind})

    async def _token(self, want: ReadToken, caller: Caller) -> Response:
        about = await self._reader.about(caller.name)
        if about is None:
            return _UNAVAILABLE
        return await self._issued(want, identity.bearer(about))

    async def _issued(self, want: ReadToken, bearer: Bearer) -> Response:
        if self._issuer is None:
            return errors.refused(
                Refusal(reason=Reason.UNKNOWN_PATH, message="Not found. No tokens are issued here.")
            )
        token = await self._issuer.issue(bearer, audience=want.audience)
        body = identity.answer(want, bearer, token)
        return Response(HTTPStatus.OK, body, {"Content-Type": JSON, "Cache-Control": "no-store"})

    async def _tell_readiness(
        self, want: ReadReadiness | ReportReadiness, caller: Caller
    ) -> Response:
        if self._readiness is None:
            return errors.refused(
                Refusal(reason=Reason.UNKNOWN_PATH, message="Not found. No readiness is kept here.")
            )
        event_id = want.event_id
        try:
            reports = (
                await self._readiness.report(event_id, want.standing, caller=caller)
                if isinstance(want, ReportReadiness)
                else await self._readiness.reports(event_id, caller=caller)
            )
        except UnknownEventError:
            # Made here and not of its words: approvals have another answer to the same error.
            return errors.refused(
                Refusal(
                    reason=Reason.UNKNOWN_EVENT,
                    message=f"Not found. No event {event_id} is open in this scope.",
                )
            )
        body = readiness.answer(event_id, reports)
        return Response(HTTPStatus.OK, body, {"Content-Type": JSON})


def _for_anybody(ask: Ask) -> Response | None:
    """The answer that is the same whoever asks; None where there is none."""
    if isinstance(ask.want, Refusal):
        return errors.refused(ask.want, is_head=ask.is_head)
    return _VERSIONS if isinstance(ask.want, ReadVersions) else None


def _is_news(wait: routes.Wait, document: Document) -> bool:
    return wait.last_incarnation is not None and wait.last_incarnation != document.incarnation


def _too_many(wait: float, ask: Ask) -> Response:
    refusal = Refusal(
        reason=Reason.TOO_MANY_REQUESTS,
        message="Too many requests. Slow down.",
        retry_after=math.ceil(wait),
    )
    return errors.refused(refusal, is_head=ask.is_head)
