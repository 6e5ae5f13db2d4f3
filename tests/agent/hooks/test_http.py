"""Calls to HTTP services: filled, judged, retried, and never to anybody else (S15, S16)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarned.agent.model import Phase, Verdict
from forewarned.clock import wall_clock
from forewarned.security.certificates import CA_FILE, provide
from tests.agent.hooks.calls import EVENT, a_call, a_hook, a_sighting
from tests.agent.hooks.http_service import Asked, Reply, Service, answering, of_its_own_authority


def well(_: Asked) -> Reply:
    return Reply(text="fine")


async def test_address_headers_and_body_name_the_event() -> None:
    with answering(well) as service:
        outcome = await a_hook(
            "http",
            url=f"{service.url}/out/{{me}}?for={{description}}",
            method="PUT",
            headers={"X-Event": "{event_id}"},
            body={"text": "{type} of {me}", "deep": [{"seconds": 5, "why": "{description}"}]},
        ).run(a_call(sighting=a_sighting(description='a "b"/c&d\r\nX-Evil: 1')))

    assert outcome.verdict is Verdict.DONE, outcome
    (asked,) = service.asked
    assert asked.method == "PUT"
    assert asked.path == "/out/web_0?for=a%20%22b%22%2Fc%26d%0D%0AX-Evil%3A%201"
    assert asked.headers["x-event"] == EVENT
    assert asked.headers["content-type"] == "application/json"
    assert "x-evil" not in asked.headers
    assert asked.json == {
        "text": "Reboot of web_0",
        "deep": [{"seconds": 5, "why": 'a "b"/c&d\r\nX-Evil: 1'}],
    }


async def test_no_event_can_add_a_header() -> None:
    """S15."""
    with answering(well) as service:
        await a_hook("http", url=service.url, headers={"X-Why": "{description}"}).run(
            a_call(sighting=a_sighting(description="a\r\nX-Evil: 1"))
        )

    assert service.asked[0].headers["x-why"] == "a  X-Evil: 1"
    assert "x-evil" not in service.asked[0].headers


async def test_a_header_may_be_in_any_language() -> None:
    with answering(well) as service:
        outcome = await a_hook("http", url=service.url, headers={"X-Why": "{description}"}).run(
            a_call(sighting=a_sighting(description="für später \N{SNOWMAN}"))
        )

    assert outcome.verdict is Verdict.DONE
    sent = service.asked[0].headers["x-why"].encode("latin-1").decode()
    assert sent == "für später \N{SNOWMAN}"


def test_what_it_would_do_is_told_without_secrets() -> None:
    hook = a_hook("http", url="http://user:pass@host:81/out?key=secret")

    assert hook.describe(Phase.PREPARE) == "call POST http://host:81/out"
    assert hook.describe(Phase.UNDO) == "nothing"


async def test_json_that_was_written_as_text_stays_json() -> None:
    with answering(well) as service:
        await a_hook(
            "http",
            url=service.url,
            headers={"content-type": "application/json"},
            body='{"why": "{description}", "empty": {}}',
        ).run(a_call(sighting=a_sighting(description='"}, {"')))

    assert json.loads(service.asked[0].body) == {"why": '"}, {"', "empty": {}}


@pytest.mark.parametrize(
    ("status", "table", "verdict"),
    [
        (204, {}, Verdict.DONE),
        (404, {}, Verdict.FAILED),
        (404, {"ok": [200, 404]}, Verdict.DONE),
        (201, {"ok": [200, 404]}, Verdict.FAILED),
        (409, {"veto": [409]}, Verdict.VETOED),
        (500, {"veto": [409]}, Verdict.FAILED),
    ],
)
async def test_the_file_says_what_a_status_means(
    status: int, table: dict[str, Any], verdict: Verdict
) -> None:
    with answering(lambda _: Reply(status=status)) as service:
        outcome = await a_hook("http", url=service.url, **table).run(a_call())

    assert outcome.verdict is verdict
    assert f"answered {status}" in outcome.detail


async def test_a_redirect_is_not_followed() -> None:
    """S16."""
    with (
        answering(well) as elsewhere,
        answering(lambda _: Reply(status=307, headers={"Location": elsewhere.url})) as service,
    ):
        outcome = await a_hook("http", url=service.url).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert elsewhere.asked == []


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """S16."""
    with answering(well) as proxy, answering(well) as service:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)

        outcome = await a_hook("http", url=service.url).run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert proxy.asked == []
    assert len(service.asked) == 1


async def test_a_failure_is_tried_again() -> None:
    replies = iter([Reply(status=503), Reply(status=200)])
    with answering(lambda _: next(replies)) as service:
        outcome = await a_hook("http", url=service.url, retries=2).run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert len(service.asked) == 2


async def test_a_service_that_is_not_there_is_a_failure_that_keeps_secrets() -> None:
    with answering(well) as service:
        url = service.url
    hook = a_hook("http", url=f"{url}/hidden-path?key=hidden")

    outcome = await hook.run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail.startswith(f"can't reach {url}: ")
    assert "hidden" not in outcome.detail
    assert (await hook.check())[0].startswith(f"can't reach {url}")


async def test_a_token_is_read_when_it_is_used(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with answering(well) as service:
        hook = a_hook("http", url=service.url, bearer_file=str(token))

        without = await hook.run(a_call())
        token.write_text("first\n")
        await hook.run(a_call())
        token.write_text("second\n")
        await hook.run(a_call())
        problems = await hook.check()

    assert (without.verdict, without.detail) == (
        Verdict.FAILED,
        f"can't read {token}: No such file or directory",
    )
    assert [asked.headers.get("authorization") for asked in service.asked[:2]] == [
        "Bearer first",
        "Bearer second",
    ]
    assert problems == []


async def test_undo_has_an_address_of_its_own() -> None:
    with answering(well) as service:
        hook = a_hook(
            "http",
            url=f"{service.url}/out",
            body="out",
            undo_url=f"{service.url}/in",
            undo_method="PUT",
            undo_body="in again: {phase}",
        )

        await hook.run(a_call())
        outcome = await hook.undo(a_call(Phase.UNDO))

    assert outcome.verdict is Verdict.DONE
    assert [(asked.method, asked.path, asked.body) for asked in service.asked] == [
        ("POST", "/out", b"out"),
        ("PUT", "/in", b"in again: undo"),
    ]


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Service]:
    with answering(well, of_its_own_authority(tmp_path)) as service:
        yield service


@pytest.mark.parametrize("others", [False, True], ids=["the system's", "of a file"])
async def test_no_service_is_told_anything_whose_certificate_is_of_an_unknown_authority(
    stranger: Service, tmp_path: Path, *, others: bool
) -> None:
    """S16: calls carry tokens, and what they answer counts as done."""
    token = tmp_path / "token"
    token.write_text("secret")
    table = {"url": stranger.url, "bearer_file": str(token), "retries": 0}
    if others:
        (tmp_path / "other").mkdir()
        other = provide(tmp_path / "other", names=["127.0.0.1"], now=wall_clock())
        table["ca_file"] = str(other.authority)

    outcome = await a_hook("http", **table).run(a_call())
    problems = await a_hook("http", **table).check()

    assert outcome.verdict is Verdict.FAILED
    assert "certificate verify failed" in outcome.detail
    assert "certificate verify failed" in problems[0]
    assert stranger.asked == []


async def test_a_service_whose_authority_the_file_names_is_called(
    stranger: Service, tmp_path: Path
) -> None:
    outcome = await a_hook("http", url=stranger.url, ca_file=str(tmp_path / CA_FILE)).run(a_call())

    assert outcome.verdict is Verdict.DONE, outcome
