"""Admins add subscriptions, change them and rotate their secrets; what is refused changes nothing."""

import html
import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from forewarned.core.model import EventSource, EventType
from forewarned.security.identities import Role
from forewarned.service.subscriptions.model import Filter, PublishedStatus, Subscription
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.targets import Apprise, Webhook
from tests.builders import OPERATOR
from tests.console.console_client import ConsoleClient, console_client, text_of
from tests.control.access_setup import token_of

URL = "https://ops.example.com/in?token=abc"
EDIT, ROTATE = "/subscriptions/ops/edit", "/subscriptions/ops/rotate"
TEMPLATE = "\n<b>{{ status }}</b> of {{ vms | join(', ') }}\n\n"


@pytest.fixture
async def guarded(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client(access="token") as console:
        yield console


async def add(
    console: ConsoleClient,
    target: Webhook | Apprise = Webhook(url=URL),  # noqa: B008  # frozen
    **more: Shape | Filter,
) -> Subscription:
    declared = Declared(name="ops", target=target, **more)  # type: ignore[arg-type]  # by name
    return await console.use_cases.subscriptions.add(declared, by=OPERATOR)


async def found(console: ConsoleClient, name: str = "ops") -> Subscription:
    return (await console.use_cases.subscriptions.show(name)).subscription


def fields_of(page: str) -> list[tuple[str, str]]:
    """What a browser sends if nothing is typed: with breaks as CR LF."""
    main = page[page.index("<main") :]
    pairs = re.findall(r'<input [^>]*name="(\w+)" value="([^"]*)"(?: size[^>]*)?>', main)
    pairs = [(name, value) for name, value in pairs if name not in {"types", "statuses", "sources"}]
    pairs += re.findall(r'type="checkbox" name="(\w+)" value="([^"]*)" checked', main)
    pairs += re.findall(r'<textarea id="(\w+)"[^>]*>\n?(.*?)</textarea>', main, re.DOTALL)
    pairs += [("shape", each) for each in re.findall("<option selected>([^<]*)", main)]
    if re.search(r'name="every_scope" checked', main):
        pairs.append(("every_scope", "on"))
    return [(name, re.sub(r"\r?\n", "\r\n", html.unescape(value))) for name, value in pairs]


def secrets_in(answer: httpx2.Response) -> list[str]:
    return re.findall(r"whsec_[\w+/=]+", html.unescape(answer.text))


async def test_one_is_added_with_all_that_it_can_have(console: ConsoleClient) -> None:
    offered = await console.see("/subscriptions")

    added = await console.send(
        "/subscribe",
        ("types", "Reboot"),
        ("types", "Freeze"),
        ("statuses", "Started"),
        ("sources", "User"),
        name="new",
        url=URL,
        shape="template",
        template=TEMPLATE.replace("\n", "\r\n"),
        content_type="text/html",
        scopes="vmss/api/*\r\navset/db",
        vms=" web-* ",
    )

    made = await found(console, "new")
    assert isinstance(made.target, Webhook)
    assert 'href="/subscribe"' in offered
    assert made.target.url == URL
    assert made.shape == Shape(name=ShapeName.TEMPLATE, template=TEMPLATE, content_type="text/html")
    assert made.filter == Filter(
        types=frozenset({EventType.REBOOT, EventType.FREEZE}),
        statuses=frozenset({PublishedStatus.STARTED}),
        sources=frozenset({EventSource.USER}),
        scopes=("vmss/api/*", "avset/db"),
        vms=("web-*",),
    )
    assert added.status_code == 200
    assert "It won’t be shown again." in text_of(added.text)
    assert f"Shape template, {len(TEMPLATE)} characters" in text_of(
        await console.see("/subscriptions/new")
    )


async def test_a_new_secret_is_shown_once_and_never_again(console: ConsoleClient) -> None:
    fields = {"name": "ops", "url": URL, "shape": "cloudevents"}
    added = await console.send("/subscribe", **fields)
    again = await console.send("/subscribe", **fields)
    target = (await found(console)).target
    pages = [await console.see(f"/subscriptions{path}") for path in ("", "/ops", "/ops/edit")]
    pages += [await console.see(ROTATE), await console.see("/history"), again.text]

    assert isinstance(target, Webhook)
    assert secrets_in(added) == list(target.secrets)
    assert added.headers["Cache-Control"] == "no-store"
    assert again.status_code == 400
    assert 'id="problem-name"' in again.text
    assert not [page for page in pages if "whsec_" in page]
    assert not [page for page in pages[:-1] if "token=abc" in page]


async def test_people_are_told_through_apprise_without_a_secret(console: ConsoleClient) -> None:
    added = await console.send(
        "/subscribe", name="ops", url="slack://A/B/C/#ops", shape="cloudevents"
    )

    assert added.headers["Location"] == "/subscriptions/ops?done=saved"
    assert (await found(console)).target == Apprise(url="slack://A/B/C/#ops")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "<Ops>"}),
        ("url", {"url": ""}),
        ("url", {"url": "ops.example.com"}),
        ("url", {"url": "https://user:word@ops.example.com/"}),
        ("ca", {"ca": "no PEM"}),
        ("ca", {"ca": "PEM", "url": "slack://A/B/C"}),
        ("shape", {"shape": "xml"}),
        ("shape", {"shape": "event-grid", "url": "slack://A/B/C", "every_scope": "on"}),
        ("template", {"shape": "template"}),
        ("template", {"template": "{{ status }}"}),
        ("template", {"shape": "template", "template": "{{ <nothing> }}"}),
        ("content_type", {"shape": "template", "template": "x", "content_type": "a\x00b"}),
        ("content_type", {"content_type": "text/html"}),
        ("every_scope", {"every_scope": "on"}),
        ("types", {"types": "Explode"}),
        ("statuses", {"statuses": "started"}),
        ("sources", {"sources": "Moon"}),
        ("scopes", {"scopes": "*\n" * 101}),
        ("vms", {"vms": "*\n" * 101}),
    ],
)
async def test_a_mistake_stands_beside_its_field_and_what_was_typed_stays(
    console: ConsoleClient, field: str, fields: dict[str, str]
) -> None:
    typed = {"name": "ops", "url": URL, "shape": "cloudevents", "vms": "<web>-*"} | fields

    answer = await console.send("/subscribe", **typed)

    assert answer.status_code == 400
    assert f'id="problem-{field}"' in answer.text, text_of(answer.text)
    kept = dict(fields_of(answer.text))
    for name in {"name", "url", "vms", "template"} & set(typed):
        assert kept[name].split() == typed[name].split()
    assert await console.use_cases.subscriptions.show_all() == []


async def test_a_form_that_is_saved_as_it_was_shown_changes_nothing(console: ConsoleClient) -> None:
    shape = Shape(name=ShapeName.TEMPLATE, template=TEMPLATE, content_type="text/html")
    wanted = Filter(
        types=frozenset({EventType.REBOOT, EventType.FREEZE}),
        sources=frozenset({EventSource.PLATFORM}),
        vms=("<web>-*", "db"),
    )
    before = await add(console, shape=shape, filter=wanted)
    page = await console.see(EDIT)

    saved = await console.send(EDIT, *fields_of(page))

    assert saved.status_code == 303, text_of(saved.text)
    assert await found(console) == before
    assert "token=abc" not in page
    assert "still go to https://ops.example.com as before" in text_of(page)


async def test_what_is_edited_changes_and_others_changes_stay(console: ConsoleClient) -> None:
    before = await add(console)
    shown = fields_of(await console.see(EDIT))
    grid = Shape(name=ShapeName.EVENT_GRID)
    await console.use_cases.subscriptions.change("ops", shape=grid, by=OPERATOR)

    await console.send(EDIT, *shown, ("statuses", "Started"), url="https://new.example.com/")

    after = await found(console)
    assert isinstance(before.target, Webhook)
    assert after.target == Webhook(url="https://new.example.com/", secrets=before.target.secrets)
    assert after.shape == grid
    assert after.filter == Filter(statuses=frozenset({PublishedStatus.STARTED}))


async def test_an_edit_that_is_refused_changes_nothing_and_keeps_what_was_typed(
    console: ConsoleClient,
) -> None:
    before = await add(console)
    shown = fields_of(await console.see(EDIT))

    bad = await console.send(EDIT, *shown, ("types", "Reboot"), url="ftp:/nowhere")
    misfit = await console.send(EDIT, *shown, url="slack://A/B/C", shape="event-grid")

    assert (bad.status_code, misfit.status_code) == (400, 400)
    assert 'id="problem-url"' in bad.text
    assert 'value="ftp:/nowhere"' in bad.text
    assert 'value="Reboot" checked' in bad.text
    assert 'id="problem-shape"' in misfit.text
    assert await found(console) == before


async def test_one_that_becomes_a_web_service_gets_a_secret_which_is_shown(
    console: ConsoleClient,
) -> None:
    await add(console, Apprise(url="slack://A/B/C"))
    page = await console.see("/subscriptions/ops")
    unsigned = text_of(await console.see(ROTATE, 409))

    saved = await console.send(EDIT, *fields_of(await console.see(EDIT)), url=URL)

    target = (await found(console)).target
    assert isinstance(target, Webhook)
    assert secrets_in(saved) == list(target.secrets)
    assert ROTATE not in page
    assert "has no secret to replace" in unsigned


async def test_a_secret_is_rotated_once_however_often_the_form_is_sent(
    console: ConsoleClient,
) -> None:
    before = (await add(console)).target
    assert isinstance(before, Webhook)
    asked = await console.see(ROTATE)
    [shown] = re.findall(r'name="shown" value="(\w+)"', asked)

    replaced = await console.send(ROTATE, shown=shown)
    again = await console.send(ROTATE, shown=shown)

    after = (await found(console)).target
    assert isinstance(after, Webhook)
    assert replaced.status_code == 200
    assert after.secrets == (*secrets_in(replaced), *before.secrets)
    assert again.status_code == 400
    assert "has been rotated since this page was opened" in text_of(again.text)
    assert "If you did not see it: pause the subscription, rotate again" in text_of(again.text)
    assert "whsec_" not in asked + again.text


async def test_one_of_the_settings_file_is_not_to_be_changed_here(console: ConsoleClient) -> None:
    declared = Declared(name="ops", target=Webhook(url=URL))
    await console.use_cases.subscriptions.keep([declared], by=OPERATOR)
    before = await found(console)

    page = await console.see("/subscriptions/ops")
    seen = [await console.see(path, 409) for path in (EDIT, ROTATE)]
    sent = [await console.send(path, url="https://x.example.com/") for path in (EDIT, ROTATE)]

    assert "the settings file: change it there, under [[subscriptions]]" in text_of(page)
    assert EDIT not in page
    assert ROTATE not in page
    assert all("change it there, under [[subscriptions]]" in text_of(each) for each in seen)
    assert [each.status_code for each in sent] == [409, 409]
    assert await found(console) == before


async def test_only_admins_are_offered_the_forms_and_may_send_them(guarded: ConsoleClient) -> None:
    """S13."""
    before = await add(guarded)
    await guarded.send("/sign-in", token=token_of(Role.MAINTAINER))

    pages = await guarded.see("/subscriptions") + await guarded.see("/subscriptions/ops")
    sent = [
        await guarded.send(path, name="x", url=URL, shape="cloudevents")
        for path in ("/subscribe", EDIT, ROTATE)
    ]

    assert not [path for path in ("/subscribe", EDIT, ROTATE) if path in pages]
    assert [each.status_code for each in sent] == [403, 403, 403]
    [left] = await guarded.use_cases.subscriptions.show_all()
    assert left.subscription == before
