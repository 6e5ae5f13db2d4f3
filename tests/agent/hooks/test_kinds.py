"""Every kind of hook can be written down, described, and refuses what makes no sense."""

from typing import Any

import msgspec
import pytest

from forewarned.agent.hooks.kinds import KINDS
from forewarned.agent.model import Phase
from tests.agent.hooks.calls import a_hook, settings_of

LEAST: dict[str, dict[str, Any]] = {
    "command": {"argv": ["true"]},
    "flag": {"path": "/run/draining"},
    "haproxy": {"servers": ["web/1"]},
    "http": {"url": "http://127.0.0.1/"},
    "kubernetes": {},
    "log": {},
    "notify": {"url": "http://127.0.0.1/"},
    "postgresql": {},
    "systemd": {"units": ["app.service"]},
}


def test_every_kind_is_tried_here() -> None:
    assert set(LEAST) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("phase", Phase)
def test_every_kind_says_what_it_would_do(kind: str, phase: Phase) -> None:
    assert a_hook(kind, **LEAST[kind]).describe(phase)


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (["web/1"], "drain HAProxy server web/1 and wait for its sessions to end"),
        (["a/1", "b/1"], "drain HAProxy servers a/1, b/1 and wait for their sessions to end"),
    ],
)
def test_one_server_is_spoken_of_as_one(servers: list[str], words: str) -> None:
    assert a_hook("haproxy", servers=servers).describe(Phase.PREPARE) == words


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_takes_a_field_that_it_does_not_know(kind: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        settings_of(kind, **LEAST[kind], colour="red")


def test_undo_is_there_where_a_kind_has_one() -> None:
    has = {kind for kind, table in LEAST.items() if settings_of(kind, **table).has_undo}

    assert has == {"flag", "haproxy", "kubernetes", "systemd"}
    assert settings_of("command", argv=["true"], undo_argv=["false"]).has_undo
    assert settings_of("http", url="http://a/", undo_url="http://a/back").has_undo
    assert not settings_of("flag", path="/run/draining", undo=False).has_undo
    assert not settings_of("systemd", units=["app.service"], action="restart").has_undo


def test_hooks_that_change_the_same_thing_are_known_by_it() -> None:
    one = settings_of("haproxy", servers=["web/1", "web/2"])
    other = settings_of("haproxy", servers=["web/2"], wait=False)
    elsewhere = settings_of("haproxy", servers=["web/2"], socket="/run/other.sock")

    assert one.targets & other.targets
    assert not one.targets & elsewhere.targets
    assert (
        settings_of("systemd", units=["app"]).targets
        == settings_of("systemd", units=["app.service"], action="restart").targets
    )
    assert settings_of("flag", path="/run/a").targets != settings_of("flag", path="/run/b").targets
    assert not settings_of("log").targets


def test_what_only_informs_is_not_required_unless_the_file_says_so() -> None:
    required = {kind for kind, table in LEAST.items() if settings_of(kind, **table).required}

    assert set(KINDS) - required == {"log", "notify"}


@pytest.mark.parametrize(
    ("kind", "table", "why"),
    [
        ("command", {"argv": []}, "length >= 1"),
        ("command", {"argv": ["a\0b"]}, "NUL"),
        ("command", {"argv": ["a"], "environment": {"A=B": "c"}}, "can't be a variable"),
        ("command", {"argv": ["a"], "veto_exit_code": 0}, "from 1 to 255"),
        ("command", {"argv": [""]}, "can't be empty"),
        ("flag", {"path": "draining"}, "absolute path"),
        ("flag", {"path": "/run/"}, "absolute path"),
        ("flag", {"path": "/run/a", "mode": "0999"}, "regex"),
        ("flag", {"path": "/run/a", "content": "{colour}"}, "there is no placeholder {colour}"),
        ("haproxy", {"servers": []}, "length >= 1"),
        ("haproxy", {"servers": ["web"]}, "regex"),
        ("haproxy", {"servers": ["web/1\nshutdown"]}, "regex"),
        ("haproxy", {"servers": ["web/1"], "socket": "haproxy.sock"}, "neither an absolute path"),
        ("haproxy", {"servers": ["web/1"], "socket": "tcp://host"}, "tcp://HOST:PORT"),
        ("haproxy", {"servers": ["web/1"], "socket": "tcp://host:0"}, "tcp://HOST:PORT"),
        ("http", {"url": "ftp://host/"}, "http://"),
        ("http", {"url": "http://host:99999/"}, "http://"),
        ("http", {"url": "http://host/", "method": "get"}, "one of GET"),
        ("http", {"url": "http://host/{colour}"}, "there is no placeholder {colour}"),
        (
            "http",
            {"url": "http://host/", "body": {"a": ["{colour}"]}},
            "there is no placeholder {colour}",
        ),
        (
            "http",
            {"url": "http://host/", "headers": {"A": "{colour}"}},
            "there is no placeholder {colour}",
        ),
        ("http", {"url": "http://host/", "headers": {"A B": "c"}}, "not a valid HTTP header"),
        ("http", {"url": "http://host/", "headers": {"A": "b\r\nC: d"}}, "not a valid HTTP header"),
        ("command", {"argv": ["a"], "directory": "here"}, "absolute path"),
        ("kubernetes", {"node": ""}, "can't be empty"),
        ("kubernetes", {"server": "api"}, "http://"),
        ("notify", {}, "either url or url_file"),
        ("notify", {"url": "http://a/", "url_file": "/a"}, "either url or url_file"),
        ("notify", {"url": "http://a/", "shape": "fax"}, "fax"),
        ("postgresql", {"user": "patroni"}, "together"),
        ("postgresql", {"psql": []}, "length >= 1"),
        ("systemd", {"units": []}, "length >= 1"),
        ("systemd", {"units": ["--force"]}, "regex"),
        ("systemd", {"units": ["a b"]}, "regex"),
        ("log", {"retries": -1}, ">= 0"),
        ("log", {"undo": True}, "unknown field"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    kind: str, table: dict[str, Any], why: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        settings_of(kind, **table)

    assert why in str(refused.value)
