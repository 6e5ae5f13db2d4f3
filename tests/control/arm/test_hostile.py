"""Any request, however wrong, has a clear answer in ARM's shape, and a refused one changes nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarned.control.arm.app import OPERATIONS, create_arm_app
from forewarned.control.arm.routes import Operation
from forewarned.security.identities import Bearer, Role
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot
from tests.control.access_setup import AFAR, access_setup, token_of
from tests.control.arm.asking import SUBSCRIPTION, refusal
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator
from tests.control.arm.sets import WEB, a_set

NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
VM: Final = f"{COMPUTE}/virtualMachines/vm"
VERSION: Final = "api-version=2024-11-01"
WRITING: Final = [each for each in OPERATIONS if each.method not in {"GET", "HEAD"}]
ARM_WRITING: Final = [each for each in WRITING if each.needs is not None]

VALUES: Final = {
    "subscription": SUBSCRIPTION,
    "group": "rg1",
    "set": "web",
    "instance": "0",
    "name": "vm",
    "location": "local",
    "namespace": "Microsoft.Compute",
    "resource": "vm",
}
"""What there is, for the names in paths; any other gets a name that nothing has."""

A_VM: Final = {
    "location": "local",
    "tags": {"a": "b"},
    "properties": {
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "storageProfile": {"imageReference": {"sku": "s"}, "osDisk": {"osType": "Linux"}},
        "osProfile": {"computerName": "vm"},
        "networkProfile": {"networkInterfaces": [{"id": f"{NETWORK}/networkInterfaces/nic"}]},
        "scheduledEventsPolicy": {"userInitiatedReboot": {"automaticallyApprove": True}},
        "scheduledEventsProfile": {
            "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}
        },
    },
}
A_SET: Final = a_set(
    1,
    scheduledEventsPolicy={"allInstancesDown": {"automaticallyApprove": True}},
    platformFaultDomainCount=2,
) | {"zones": ["1"], "tags": {"a": "b"}}
AN_INTERFACE: Final = {
    "location": "local",
    "tags": {"a": "b"},
    "properties": {"ipConfigurations": [{"name": "i", "properties": {"primary": True}}]},
}
AN_AVAILABILITY_SET: Final = {
    "location": "local",
    "sku": {"name": "Aligned"},
    "properties": {"platformUpdateDomainCount": 2, "platformFaultDomainCount": 2},
}
A_DEPLOYMENT: Final = {
    "properties": {
        "mode": "Incremental",
        "parameters": {"p": {"value": "net"}},
        "template": {
            "parameters": {"p": {"type": "string", "defaultValue": "x"}},
            "variables": {"v": ["[parameters('p')]"]},
            "resources": [
                {
                    "type": "Microsoft.Network/virtualNetworks",
                    "name": "[variables('v')[0]]",
                    "apiVersion": "2022-01-01",
                    "dependsOn": [],
                    "copy": {"name": "loop", "count": 1},
                    "properties": {"subnets": [{"name": "s", "properties": {}}]},
                }
            ],
            "outputs": {"o": {"type": "object", "value": "[reference('net')]"}},
        },
    }
}
WRONG: Final[tuple[Any, ...]] = (
    None,
    7,
    -1,
    1.5,
    True,
    "",
    "x",
    "é\u0000/..",
    "x" * 5000,
    [],
    [None],
    [[]],
    {},
    {"": {}},
)
SAMPLE: Final = 9
"""One mutant of so many is tried, unless the profile is thorough. It shares no divisor with the
number of wrong values, so that each of them is tried in some places."""
DECLARING: Final = {
    f"{COMPUTE}/virtualMachines/vm": A_VM,
    WEB: A_SET,
    f"{NETWORK}/networkInterfaces/nic": AN_INTERFACE,
    f"{COMPUTE}/availabilitySets/some": AN_AVAILABILITY_SET,
    f"{GROUP}/providers/Microsoft.Resources/deployments/d": A_DEPLOYMENT,
    GROUP: {"location": "local", "tags": {"a": "b"}, "managedBy": "x"},
}


def _is_thorough() -> bool:
    return settings.get_current_profile_name() == "thorough"


def _mutants(value: Any) -> Iterator[Any]:
    """The document with something wrong at each of its places, one at a time."""
    yield from WRONG
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {key: each for key, each in value.items() if key != name}
            for mutant in _mutants(inner):
                yield {**value, name: mutant}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            for mutant in _mutants(inner):
                yield [*value[:at], mutant, *value[at + 1 :]]


@pytest.mark.parametrize("path", DECLARING)
async def test_wrong_types_at_every_place_are_refused_or_kept_and_shown(path: str) -> None:
    refused = 0
    mutants = [each for each in _mutants(DECLARING[path]) if isinstance(each, dict)]
    for mutant in mutants if _is_thorough() else mutants[::SAMPLE]:
        async with emulator() as arm:
            before = await _everything(arm)
            response = await arm.ask("PUT", path, mutant)
            assert response.status_code < 500, (mutant, response.text)
            if response.is_client_error:
                refusal(response)
                assert await _everything(arm) == before, mutant
                refused += 1
                continue
            # What was taken can be looked at in every way, changed and deleted.
            for look in (
                path,
                path.rpartition("/")[0],
                f"{path}/instanceView",
                f"{GROUP}/resources",
            ):
                shown = await arm.ask("GET", look)
                assert shown.status_code < 500, (mutant, look, shown.text)
            assert (await arm.ask("PATCH", path, {"tags": {}})).status_code < 500, mutant
            assert (await arm.ask("DELETE", path)).is_success, mutant
    assert refused


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    [
                        "properties",
                        "tags",
                        "sku",
                        "location",
                        "instanceIds",
                        "id",
                        "template",
                        "resources",
                        "scheduledEventIdList",
                    ]
                ),
                st.text(max_size=4),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@settings(
    max_examples=1_000 if _is_thorough() else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operation=st.sampled_from(ARM_WRITING), body=json_values)
async def test_any_json_to_any_operation_has_an_answer(
    anyio_backend: object, operation: Operation, body: object
) -> None:
    async with emulator() as arm:
        await arm.good("PUT", WEB, a_set(1))
        await arm.good("PUT", VM, {})
        before = await _everything(arm)

        response = await arm.ask(operation.method, _filled(operation), body)

        assert response.status_code < 500, response.text
        if response.is_client_error:
            refusal(response)
            assert await _everything(arm) == before


async def test_s9_bodies_that_are_none_change_nothing(arm: Emulator) -> None:
    """Too large, cut off, of another type, not an object, too deep."""
    before = await _everything(arm)
    bodies = [
        b'{"a": "' + b"x" * (4 << 20) + b'"}',
        b"{",
        b"\xff",
        b"[]",
        b'{"a":' * 99 + b"1" + b"}" * 99,
    ]

    for each in ARM_WRITING:
        path = f"{_filled(each, there=False)}?{VERSION}"
        for body in bodies:
            response = await arm.http.request(
                each.method, path, content=body, headers={"Content-Type": "application/json"}
            )

            # What looks at no body takes any.
            is_taken = each.method == "DELETE" or _is_harmless(each)
            assert response.is_client_error or is_taken, (each, body[:20])
            assert response.status_code < 500, (each, body[:20])
        assert await _everything(arm) == before, each


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
async def test_what_is_not_there_is_said_so(arm: Emulator, each: Operation) -> None:
    """Unknown names in every path: never a fault of the server, and nothing is made by looking."""
    before = await _everything(arm)

    response = await arm.ask(each.method, _filled(each, there=False), {})

    assert response.status_code < 500
    if each.method != "PUT":
        assert await _everything(arm) == before
    if response.is_client_error and each.method != "HEAD" and each.needs is not None:
        refusal(response)


@pytest.mark.parametrize(
    "raw",
    [
        b"/subscriptions/%s/resourceGroups/rg1/../rg2",
        b"/subscriptions/%s/resourceGroups/..",
        b"/subscriptions/%s/resourceGroups/%%2e%%2e",
        b"/subscriptions/%s/resourceGroups/a%%2fb",
        b"/subscriptions/%s/resourceGroups/a%%5cb",
        b"/subscriptions/%s/resourceGroups/a%%00",
        b"/subscriptions/%s/resourceGroups/a%%0d%%0aSet-Cookie:x",
        b"/subscriptions/%s//resourceGroups/a",
        b"//subscriptions/%s/resourceGroups/a",
        b"/subscriptions/%s/resourceGroups/%%c0%%af",
        b"/subscriptions/%s/resourceGroups/%%zz",
        b"/subscriptions/%s/resourceGroups/%%252e%%252e",
        b"/subscriptions/%s/resourceGroups/a b",
        b"/subscriptions/%s/resourceGroups/\xff",
        b"/subscriptions/%s/resourceGroups/%%e2%%80%%ae",
        b"/subscriptions/%s/resourceGroups/" + b"a" * 60_000,
        b"/subscriptions/%s/resourceGroups" + b"/a" * 5_000,
    ],
)
async def test_s6_tricks_with_paths_are_refused(arm: Emulator, raw: bytes) -> None:
    before = await _everything(arm)

    status, body = await _raw(arm, raw % SUBSCRIPTION.encode())

    assert 400 <= status < 500
    assert msgspec.json.decode(body)["error"]["code"]
    assert len(body) < 3000
    assert await _everything(arm) == before


async def _raw(arm: Emulator, path: bytes) -> tuple[int, bytes]:
    """A PUT of a resource group by a path that no client would let through."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "PUT",
        "scheme": "https",
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": VERSION.encode(),
        "headers": [(b"host", b"localhost:8171"), (b"content-type", b"application/json")],
        "client": (AFAR, 40_000),
        "server": ("localhost", 8171),
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b'{"location": "local"}', "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await create_arm_app(arm.services)(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


async def test_s12_foreign_tokens_open_nothing(arm: Emulator, tmp_path: Path) -> None:
    """None, nonsense, of another server, for another audience, of a reader."""
    bearer = Bearer(subject="vm", object_id="x", resource_path=VM)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    async with access_setup(tmp_path / "here") as gate, access_setup(tmp_path / "there") as other:
        foreign = await other.tokens.issue(bearer, audience="https://localhost:8171")
        stray = await gate.tokens.issue(bearer, audience="https://vault.example")
        app = create_arm_app(replace(arm.services, access=gate.access))
        transport = httpx2.ASGITransport(app, client=(AFAR, 40_000))
        before = await _everything(arm)
        async with httpx2.AsyncClient(
            transport=transport, base_url="https://localhost:8171"
        ) as http:
            for token, expected in (
                (None, 401),
                ("x", 401),
                ("a.b.c", 401),
                (foreign.text, 401),
                (stray.text, 401),
                (token_of(Role.READER), 403),
            ):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                for each in ARM_WRITING:
                    response = await http.request(
                        each.method, f"{_filled(each)}?{VERSION}", headers=headers, json={}
                    )
                    assert response.status_code == expected, (each.path, token)
                    refusal(response)
                    assert ("WWW-Authenticate" in response.headers) == (expected == 401)
        assert await _everything(arm) == before


def _filled(operation: Operation, *, there: bool = True) -> str:
    """The operation's path with names of what there is, or of nothing but the subscription."""
    known = VALUES if there else {"subscription": SUBSCRIPTION}
    parts = [
        known.get(part[1:-1], f"none-{part[1:-1]}") if part.startswith("{") else part
        for part in operation.parts
    ]
    return "/" + "/".join(parts)


def _is_harmless(operation: Operation) -> bool:
    return operation.path.endswith("/register")


async def _everything(arm: Emulator) -> object:
    def question(snapshot: Snapshot) -> object:
        return (
            [(saved.scope.id, saved.revision) for saved in snapshot.scopes()],
            list(snapshot.bindings()),
            list(snapshot.declarations("/")),
            snapshot.history(HistoryFilter(limit=100_000)),
        )

    return await arm.use_cases.engine.ask(question)
