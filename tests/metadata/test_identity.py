"""The identity endpoint: a VM's token for itself, as the managed-identity clients ask for it."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from forewarned.metadata.instance_versions import METADATA_VERSIONS
from forewarned.metadata.options import Options
from forewarned.security.identities import LOCAL_USER, TokensUnavailableError
from forewarned.service.errors import StoreUnavailableError
from tests.builders import HOUR, NOON
from tests.metadata.fakes import Answer, Client, FakeService, Site, a_vm, get

ARM = "https://localhost:8171"
GROUP = "/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/group1"
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
VM_ID = "13f56399-bd52-4150-9748-7190aae1ff21"


def target(resource: str = ARM, version: str = "2018-02-01", **more: str) -> str:
    fields = {"api-version": version, "resource": resource} | more
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items() if value)
    return f"/metadata/identity/oauth2/token?{query}"


def said(answer: Answer) -> Any:  # JSON, which tests look into
    return json.loads(answer.body)


async def test_a_vm_gets_a_token_in_which_every_value_is_a_string(client: Client) -> None:
    answer = await client.get(target())

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert said(answer) == {
        "access_token": f"vm1|{VM_ID}|{COMPUTE}/virtualMachines/vm1|{ARM}",
        "client_id": VM_ID,
        "expires_in": "3600",
        "expires_on": str(int((NOON + HOUR).timestamp())),
        "ext_expires_in": "3600",
        "not_before": str(int(NOON.timestamp())),
        "resource": ARM,
        "token_type": "Bearer",
    }


async def test_an_instance_of_a_scale_set_has_the_path_of_one(service: FakeService) -> None:
    service.reader.vms["vm1"] = a_vm("web_3", scale_set="web")

    async with service.serving() as site:
        token = said(await site.get(target()))["access_token"]

    assert f"|{COMPUTE}/virtualMachineScaleSets/web/virtualMachines/3|" in token


async def test_somebody_at_an_emulators_machine_gets_a_token_where_there_is_no_vm(
    service: FakeService,
) -> None:
    """So that `az` can make the first VM, or the next one after all are deleted."""
    service.directory.forget("vm1")

    async with service.serving(Options(rate_limit=None, emulator=True)) as site:
        plain = await site.get(target(), address="127.0.0.9")
        named = await site.get(f"/vm/vm1{target()}", address="127.0.0.9")

    assert plain.status == 200
    assert said(plain)["access_token"] == f"{LOCAL_USER.subject}|{LOCAL_USER.object_id}||{ARM}"
    assert named.status == 404


async def test_a_service_gives_no_token_to_whom_it_does_not_know(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=None)) as site:
        assert (await site.get(target(), address="127.0.0.9")).status == 403


async def test_the_client_id_that_was_named_is_echoed(client: Client) -> None:
    answer = await client.get(target(client_id="my identity"))

    assert said(answer)["client_id"] == "my identity"


@pytest.mark.parametrize("version", [*METADATA_VERSIONS, "2017-09-01"])
async def test_every_version_of_the_metadata_service_will_do(client: Client, version: str) -> None:
    assert (await client.get(target(version=version))).status == 200


@pytest.mark.parametrize(
    "resource", [f"{ARM}/", "https://management.azure.com/", "api://a b", "ü", "x" * 1024]
)
async def test_the_audience_is_what_was_asked_for(client: Client, resource: str) -> None:
    answer = said(await client.get(target(resource)))

    assert answer["resource"] == resource
    assert answer["access_token"].endswith(f"|{resource}")


@pytest.mark.parametrize(
    "path",
    [
        target(resource=""),
        target(version=""),
        target(version="2020-07-01"),
        target(version="latest"),
        target(resource="a\nb"),
        target(resource="x" * 1025),
        target(client_id="\0"),
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=%FF",
        f"{target()}&resource=https://elsewhere",
        "/metadata/identity/oauth2/token",
    ],
)
async def test_bad_requests_are_refused_in_oauths_words(client: Client, path: str) -> None:
    answer = await client.get(path)

    assert answer.status == 400
    assert said(answer).keys() == {"error", "error_description"}
    assert said(answer)["error"] == "invalid_request"


async def test_without_the_metadata_header_there_is_no_token(client: Client) -> None:
    """S5. DefaultAzureCredential probes so, and takes the 400 for a sign of life."""
    answer = await client.get(target(), Metadata="")

    assert answer.status == 400
    assert said(answer) == {
        "error": "invalid_request",
        "error_description": "Bad request: . Required metadata header not specified",
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
async def test_tokens_are_only_read(site: Site, method: str) -> None:
    client = await site.connect()
    await client.send(get(target(), method))

    assert (await client.receive(to_head=method == "HEAD")).status == 405


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("X_Forwarded_For", "10.0.0.1", 400),
        ("Origin", "https://evil.test", 403),
        ("Host", "evil.test", 400),
    ],
)
async def test_the_guards_stand_before_tokens_too(
    client: Client, header: str, value: str, status: int
) -> None:
    answer = await client.get(target(), **{header: value})

    assert answer.status == status
    assert b"access_token" not in answer.body


async def test_the_same_bytes_from_two_vms_get_two_tokens(service: FakeService) -> None:
    """What is recognised is the request, never the answer."""
    service.add("vm2", "127.0.0.2", "scope2")
    service.reader.vms["vm2"] = a_vm("vm2", "127.0.0.2")

    async with service.serving() as site:
        one, two = await site.connect(), await site.connect("127.0.0.2")
        answers = [said(await each.get(target())) for each in (one, two, one, two)]

    names = [answer["access_token"].partition("|")[0] for answer in answers]
    assert names == ["vm1", "vm2", "vm1", "vm2"]


async def test_an_address_of_no_vm_gets_no_token(service: FakeService) -> None:
    async with service.serving() as site:
        answer = await site.get(target(), address="127.0.0.9")

    assert answer.status == 403
    assert said(answer)["error"] == "invalid_request"
    assert "not bound to any VM" in said(answer)["error_description"]


async def test_an_emulator_gives_the_token_of_the_vm_in_the_path(service: FakeService) -> None:
    service.add("vm2", "127.0.0.2", "scope2")
    service.reader.vms["vm2"] = a_vm("vm2", "127.0.0.2")

    async with service.serving(Options(rate_limit=None, emulator=True)) as site:
        named = await site.get(f"/vm/VM2{target()}")
        unknown = await site.get(f"/vm/vm3{target()}")

    assert said(named)["access_token"].startswith("vm2|")
    assert unknown.status == 404
    assert said(unknown)["error"] == "invalid_request"


async def test_a_service_gives_nobody_the_token_of_a_vm_in_the_path(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=None)) as site:
        assert (await site.get(f"/vm/vm1{target()}")).status == 404


async def test_the_rate_limit_counts_tokens(service: FakeService) -> None:
    async with service.serving(Options(rate_limit=2)) as site:
        client = await site.connect()
        statuses = [(await client.get(target())).status for _ in range(3)]

    assert statuses == [200, 200, 429]


async def test_without_a_key_the_answer_is_to_try_again(
    service: FakeService, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    service.issuer.error = TokensUnavailableError("the key can't be read")

    answer = await client.get(target())

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "no token can be issued" in caplog.text


async def test_without_the_store_the_answer_is_to_try_again(
    service: FakeService, client: Client
) -> None:
    service.issuer.error = StoreUnavailableError()

    assert (await client.get(target())).status == 503


async def test_a_poll_goes_on_as_before_beside_tokens(client: Client) -> None:
    before = await client.get()
    await client.get(target())

    assert await client.get() == before
