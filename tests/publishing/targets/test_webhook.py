"""The webhook target, with a receiver that answers late, twice, wrongly or never."""

import asyncio
import base64
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from standardwebhooks import WebhookVerificationError

from forewarned.clock import wall_clock
from forewarned.publishing.targets.webhook import WebhookTarget
from forewarned.security.certificates import ServerCertificate, provide
from forewarned.service.subscriptions.outcomes import Delivered, Gone, Later, Outcome, Refused
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Webhook
from forewarned.targets.addresses import Reach, Resolve
from forewarned.targets.signatures import new_secret
from tests.publishing.receiver import NEVER, Received, Reply, receiving
from tests.service.subscriptions.messages import a_message, a_subscription

OLD, NEW = new_secret(b"o" * 32), new_secret(b"n" * 32)
MESSAGE = a_message()
RESOLVED = ["127.0.0.1"]


async def localhost(_host: str, _port: int) -> Sequence[str]:
    return RESOLVED


async def deliver(
    url: str,
    *,
    shape: Shape = Shape(),  # noqa: B008  # frozen
    secrets: Sequence[str] = (NEW,),
    secret_file: str = "",
    ca: str = "",
    ca_file: str = "",
    reach: Reach = Reach.LOOPBACK,
    resolve: Resolve | None = None,
    patience: timedelta = timedelta(seconds=20),
) -> Outcome:
    hook = Webhook(url=url, secrets=tuple(secrets), secret_file=secret_file, ca=ca, ca_file=ca_file)
    subscription = a_subscription(target=hook, shape=shape)
    target = WebhookTarget(subscription, hook, reach=reach, resolve=resolve, patience=patience)
    return await target.deliver(MESSAGE, subscription)


async def answered(
    reply: Reply | Callable[[Received], Reply | None] | None,
    patience: timedelta = timedelta(seconds=20),
) -> Outcome:
    answer = reply if callable(reply) else lambda _: reply
    async with receiving(answer) as receiver:
        return await deliver(f"{receiver.url}/hook?code=hidden", patience=patience)


def reason(outcome: Outcome) -> str:
    assert not isinstance(outcome, Delivered)
    assert "hidden" not in outcome.reason, "the query of a URL may be a secret"
    return outcome.reason


# --- what is sent --------------------------------------------------------------------------------


async def test_a_message_is_posted_and_signed_as_standard_webhooks_says() -> None:
    async with receiving() as receiver:
        outcome = await deliver(f"{receiver.url}/hook?code=hidden")

    (received,) = receiver.received
    assert outcome == Delivered()
    assert (received.method, received.path) == ("POST", "/hook?code=hidden")
    assert received.headers["webhook-id"] == MESSAGE.id
    assert received.headers["user-agent"].startswith("forewarned/")
    assert received.verified(NEW)["id"] == MESSAGE.id
    with pytest.raises(WebhookVerificationError):
        received.verified(OLD)


async def test_while_a_secret_is_replaced_both_verify() -> None:
    async with receiving() as receiver:
        await deliver(receiver.url, secrets=[NEW, OLD])

    (received,) = receiver.received
    for secret in (NEW, OLD):
        assert received.verified(secret)["id"] == MESSAGE.id


async def test_secrets_in_a_file_are_read_at_each_attempt(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    async with receiving() as receiver:
        file.write_text(f"{OLD}\n")
        first = await deliver(receiver.url, secrets=(), secret_file=str(file))
        file.write_text(f"{NEW}\n{OLD}\n")
        second = await deliver(receiver.url, secrets=(), secret_file=str(file))

    assert first == second == Delivered()
    before, after = receiver.received
    assert before.verified(OLD) == after.verified(OLD) == after.verified(NEW)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "can't read {file}: No such file or directory"),
        ("", "{file} has no secret to sign with"),
        ("hidden", "can't sign with the secret in {file}: a secret starts with whsec_"),
        (
            "whsec_" + base64.b64encode(b"hidden").decode(),
            "can't sign with the secret in {file}: a secret has 24 to 64 bytes, and this has 6",
        ),
    ],
)
async def test_nothing_is_sent_without_a_signature(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "secrets"
    if text is not None:
        file.write_text(text)
    async with receiving() as receiver:
        outcome = await deliver(receiver.url, secrets=(), secret_file=str(file))

    assert isinstance(outcome, Later)
    assert reason(outcome) == why.format(file=file)
    assert receiver.received == []


async def test_a_template_is_sent_as_its_author_says() -> None:
    shape = Shape(
        name=ShapeName.TEMPLATE,
        template='{"text": {{ event.type | tojson }}}',
        content_type="application/json",
    )
    async with receiving() as receiver:
        outcome = await deliver(receiver.url, shape=shape)

    (received,) = receiver.received
    assert outcome == Delivered()
    assert received.headers["content-type"] == "application/json"
    assert received.verified(NEW) == {"text": "Reboot"}


# --- what an answer means ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_means_delivered(status: int) -> None:
    assert await answered(Reply(status=status)) == Delivered()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 422, 451])
async def test_a_4xx_is_a_refusal(status: int) -> None:
    outcome = await answered(Reply(status=status, body=b"gone\nfor good"))

    assert isinstance(outcome, Refused)
    assert reason(outcome).endswith(f" answered {status}: gone for good")


async def test_a_410_means_that_the_receiver_is_gone() -> None:
    """As Standard Webhooks has it."""
    outcome = await answered(Reply(status=410, body=b"moved away"))

    assert isinstance(outcome, Gone)
    assert outcome.reason.endswith(" answered 410: moved away")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_what_may_go_better_the_next_time_is_tried_again(status: int) -> None:
    outcome = await answered(Reply(status=status))

    assert isinstance(outcome, Later)
    assert outcome.retry_after is None
    assert reason(outcome).endswith(f" answered {status}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_refusal_and_never_followed(status: int) -> None:
    async with (
        receiving() as other,
        receiving(
            lambda _: Reply(status=status, headers={"Location": f"{other.url}/elsewhere"})
        ) as receiver,
    ):
        outcome = await deliver(receiver.url)

    assert isinstance(outcome, Refused)
    assert "redirects are not followed" in reason(outcome)
    assert other.received == []


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", timedelta(minutes=2)),
        ("0", timedelta(0)),
        ("99999999999999999999", timedelta(days=366)),
        (format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True), timedelta(0)),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Fri, 99 Foo 2026 25:00:00 GMT", None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999", None),
        ("²", None),
    ],
)
async def test_retry_after_is_seconds_or_a_date(text: str, wait: timedelta | None) -> None:
    outcome = await answered(Reply(status=429, headers={"Retry-After": text}))

    assert isinstance(outcome, Later)
    assert outcome.retry_after == wait


async def test_retry_after_may_be_a_date_to_come() -> None:
    date = format_datetime(wall_clock() + timedelta(minutes=10), usegmt=True)

    outcome = await answered(Reply(status=503, headers={"Retry-After": date}))

    assert isinstance(outcome, Later)
    assert outcome.retry_after is not None
    assert timedelta(minutes=9) < outcome.retry_after <= timedelta(minutes=10)


@pytest.mark.parametrize("name", [ShapeName.CLOUDEVENTS, ShapeName.EVENT_GRID])
async def test_what_a_receiver_repeats_of_a_secret_url_is_not_shown(name: ShapeName) -> None:
    """S14: health and logs are for more people than the URL of a chat's hook."""
    path = "/hooks/T0PS3CRET?sig=MoreSecret%21"
    reply = Reply(status=404, body=f"no hook {path}".encode())
    async with receiving(lambda _: reply) as receiver:
        hook = Webhook(url=f"{receiver.url}{path}", secrets=(NEW,))
        subscription = a_subscription(target=hook, shape=Shape(name=name))
        target = WebhookTarget(subscription, hook, reach=Reach.LOOPBACK)
        outcome = await target.deliver(a_message(), subscription)

    assert "no hook /hooks/***?sig=***" in reason(outcome)
    assert receiver.url in reason(outcome)


async def test_what_a_receiver_says_is_kept_in_one_line_that_can_be_printed() -> None:
    """S14: a database refuses a NUL, and a terminal obeys an escape."""
    outcome = await answered(Reply(status=500, body=b"\x00\x1b[2J\r\nforged\xff"))

    assert reason(outcome).endswith(" answered 500: [2J forged\ufffd")


async def test_a_host_that_can_t_be_is_tried_again_and_told() -> None:
    outcome = await deliver("http://a..b/hidden")

    assert isinstance(outcome, Later)
    assert "a..b" in reason(outcome)


async def test_a_receiver_that_answers_twice_has_answered() -> None:
    assert await answered(Reply(times=2)) == Delivered()


async def test_a_receiver_that_never_answers_is_given_up_at_the_limit() -> None:
    outcome = await answered(NEVER, patience=timedelta(seconds=0.3))

    assert isinstance(outcome, Later)
    assert reason(outcome).endswith(" did not answer within 300ms")


async def test_a_late_answer_within_the_limit_counts() -> None:
    late = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, late.set)

    assert await answered(Reply(after=late)) == Delivered()


async def test_a_broken_connection_is_tried_again() -> None:
    outcome = await answered(Reply(resets=True))

    assert isinstance(outcome, Later)
    assert "can't reach http://127.0.0.1:" in reason(outcome)


async def test_of_an_endless_answer_only_the_beginning_is_read() -> None:
    """S9."""
    assert await answered(Reply(is_endless=True)) == Delivered()

    refused = await answered(Reply(status=500, is_endless=True))
    assert isinstance(refused, Later)
    assert len(reason(refused)) < 400


async def test_no_one_at_the_address_is_tried_again() -> None:
    async with receiving() as receiver:
        url = receiver.url

    outcome = await deliver(url)

    assert isinstance(outcome, Later)
    assert reason(outcome).startswith(f"can't reach {url}: ")


async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """S16."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert await answered(Reply()) == Delivered()


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServerCertificate:
    names = ["hook.example", "127.0.0.1"]
    return provide(tmp_path_factory.mktemp("tls"), names=names, now=wall_clock())


def tls_of(certificate: ServerCertificate) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    return tls


async def test_a_certificate_that_is_not_trusted_gets_nothing(served: ServerCertificate) -> None:
    async with receiving(tls=tls_of(served)) as receiver:
        outcome = await deliver(receiver.url)

    assert isinstance(outcome, Later)
    assert "certificate verify failed" in reason(outcome).lower()
    assert receiver.received == []


async def test_the_authority_may_be_given_as_text_or_as_a_file(served: ServerCertificate) -> None:
    async with receiving(tls=tls_of(served)) as receiver:
        as_text = await deliver(receiver.url, ca=served.authority.read_text())
        as_file = await deliver(receiver.url, ca_file=str(served.authority))

    assert as_text == as_file == Delivered()


async def test_the_name_of_the_url_is_asked_for_and_verified(served: ServerCertificate) -> None:
    """The connection goes to an address, but Host, SNI and the certificate are the name's."""
    asked: list[str | None] = []
    tls = tls_of(served)
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    ca = served.authority.read_text()
    async with receiving(tls=tls) as receiver:
        right = f"https://hook.example:{receiver.port}/"
        outcome = await deliver(right, ca=ca, resolve=localhost)
        wrong = f"https://other.example:{receiver.port}/"
        refused = await deliver(wrong, ca=ca, resolve=localhost)

    (received,) = receiver.received
    assert outcome == Delivered()
    assert received.headers["host"] == f"hook.example:{receiver.port}"
    assert asked == ["hook.example", "other.example"]
    assert isinstance(refused, Later)
    assert "other.example" in reason(refused)


async def test_a_file_of_certificates_that_can_t_be_used_is_named(tmp_path: Path) -> None:
    gone = await deliver("https://127.0.0.1:9/", ca_file=str(tmp_path / "gone.pem"))
    (tmp_path / "empty.pem").write_text("nothing")
    empty = await deliver("https://127.0.0.1:9/", ca_file=str(tmp_path / "empty.pem"))

    assert f"can't use the certificates in {tmp_path / 'gone.pem'}" in reason(gone)
    assert f"can't use the certificates in {tmp_path / 'empty.pem'}" in reason(empty)


# --- where it may go -----------------------------------------------------------------------------


async def test_private_addresses_are_refused_unless_they_are_allowed() -> None:
    """S1, in the other direction."""
    async with receiving() as receiver:
        refused = await deliver(receiver.url, reach=Reach.PUBLIC)
        allowed = await deliver(receiver.url, reach=Reach.PRIVATE)

    assert isinstance(refused, Later)
    assert reason(refused) == (
        "127.0.0.1 is not allowed as a target: 127.0.0.1 is an address of this machine;"
        " set publishing_private_addresses to allow it"
    )
    assert allowed == Delivered()
    assert len(receiver.received) == 1


async def test_a_name_is_resolved_once_and_what_it_means_later_does_not_matter() -> None:
    """DNS rebinding: the second answer leads elsewhere, where another listens at the same port."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def rebinding(_host: str, _port: int) -> Sequence[str]:
        return answers.pop(0)

    async with receiving() as receiver, receiving(host="127.0.0.2", port=receiver.port) as other:
        outcome = await deliver(f"http://rebound.example:{receiver.port}/", resolve=rebinding)

    assert outcome == Delivered()
    assert answers == [["127.0.0.2"]]
    assert len(receiver.received) == 1
    assert other.received == []


async def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    async def private(_host: str, _port: int) -> Sequence[str]:
        return ["10.0.0.1"]

    outcome = await deliver("http://inside.example/hidden", resolve=private)

    assert isinstance(outcome, Later)
    assert reason(outcome) == (
        "inside.example is not allowed as a target: 10.0.0.1 is in a private network;"
        " set publishing_private_addresses to allow it"
    )


async def test_of_several_addresses_those_that_may_not_be_reached_are_left_out() -> None:
    async def mixed(_host: str, _port: int) -> Sequence[str]:
        return ["169.254.169.254", "127.0.0.2", "127.0.0.1"]

    async with receiving() as receiver:
        # No one is at 127.0.0.2: the next one is tried.
        outcome = await deliver(f"http://mixed.example:{receiver.port}/", resolve=mixed)

    assert outcome == Delivered()
    assert receiver.received[0].headers["host"] == f"mixed.example:{receiver.port}"


async def test_a_name_that_does_not_resolve_is_tried_again() -> None:
    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    outcome = await deliver("http://gone.example/hook?hidden", resolve=unknown)

    assert outcome == Later(reason="can't resolve gone.example: Name or service not known")
