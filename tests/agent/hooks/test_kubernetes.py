"""A node is cordoned and drained as budgets allow, and uncordoned only where we cordoned it (I30).

Somebody else's part, such as `kubectl cordon`, is played by the official client.
"""

import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.model import HookOutcome, Verdict
from forewarned.clock import wall_clock
from forewarned.security.certificates import provide
from forewarned.targets.kubernetes import CORDONED_BY
from tests.agent.hooks.calls import EVENT, OTHER_EVENT, Told, a_call, a_hook, a_sighting, undone
from tests.agent.hooks.http_service import Asked, Reply, Service, answering
from tests.agent.hooks.kubernetes_api import TOKEN, Budget, KubernetesApi, Object


@pytest.fixture
def api() -> KubernetesApi:
    made = KubernetesApi()
    made.add_node("node-1")
    return made


@pytest.fixture
def service(api: KubernetesApi) -> Iterator[Service]:
    with api.serving() as serving:
        yield serving


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


# Any: fields of the hook's table.
def drain(service: Service, token: Path, **table: Any) -> Hook:
    return a_hook("kubernetes", server=service.url, node="node-1", token_file=str(token), **table)


def another(event_id: str = OTHER_EVENT) -> Call:
    return a_call(sighting=a_sighting(event_id))


# Any: what it answers is looked at by the test.
def kubectl(service: Service) -> Any:
    # Takes two seconds, which only who runs this test has to wait.
    from kubernetes import client

    configuration = client.Configuration(host=service.url)
    configuration.api_key["authorization"] = f"Bearer {TOKEN}"
    return client.CoreV1Api(client.ApiClient(configuration))


def is_cordoned(api: KubernetesApi) -> bool:
    return api.nodes["node-1"]["spec"].get("unschedulable") is True


def cordoned_by(api: KubernetesApi) -> str | None:
    by: str | None = api.nodes["node-1"]["metadata"]["annotations"].get(CORDONED_BY)
    return by


async def test_a_node_is_cordoned_drained_and_uncordoned(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("web-1")
    api.add_pod("db-0", owner="StatefulSet", namespace="data")
    hook = drain(service, token)

    outcome = await hook.run(a_call())
    during = is_cordoned(api), cordoned_by(api), api.pods_on("node-1")
    back = await undone(hook, outcome)

    assert (outcome.verdict, outcome.detail) == (
        Verdict.DONE,
        "cordoned node-1, evicted its pods",
    )
    assert during == (True, EVENT, [])
    assert (back.verdict, back.detail) == (Verdict.DONE, "uncordoned node-1")
    assert not is_cordoned(api)
    assert api.nodes["node-1"]["metadata"]["annotations"] == {"other": "stays"}


async def test_pods_that_would_not_go_or_would_not_come_back_stay(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("web-1")
    api.add_pod("logs-1", owner="DaemonSet")
    api.add_pod("proxy-1", owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    api.add_pod("done-1", owner="Job", phase="Succeeded")
    api.add_pod("failed-1", owner="Job", phase="Failed")
    api.add_pod("bare-1", owner=None)
    api.add_pod("kept-1", namespace="kept")
    api.add_pod("elsewhere-1", node="node-2")

    outcome = await drain(service, token, keep_namespaces=["kept"]).run(a_call())

    assert outcome.detail == "cordoned node-1, evicted its pods; 4 stay"
    assert api.pods_on("node-1") == ["bare-1", "done-1", "failed-1", "kept-1", "logs-1", "proxy-1"]
    assert api.pods_on("node-2") == ["elsewhere-1"]
    asked = [asked.path for asked in service.asked if asked.method == "POST"]
    assert asked == ["/api/v1/namespaces/default/pods/web-1/eviction"]


async def test_one_pod_that_stays_is_told(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("bare-1", owner=None)

    outcome = await drain(service, token).run(a_call())

    assert outcome.detail == "cordoned node-1, evicted its pods; 1 stays"


async def test_pods_that_nothing_makes_anew_go_if_the_file_says_so(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("bare-1", owner=None)

    await drain(service, token, evict_unmanaged=True, grace=timedelta(seconds=7)).run(a_call())

    assert api.pods_on("node-1") == []
    eviction = next(asked for asked in service.asked if asked.path.endswith("/eviction"))
    assert eviction.json["deleteOptions"]["gracePeriodSeconds"] == 7


async def test_a_budget_is_asked_again_until_it_lets_go(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("web-1")
    api.add_pod("web-2")
    budget = Budget("default", "web", allowed=1)
    api.budgets.append(budget)
    waits_for: list[str] = []

    def tell(text: str) -> None:
        waits_for.append(text)
        if "budget" in text and len(waits_for) > 1:
            budget.allowed = 1

    outcome = await drain(service, token).run(replace(a_call(), waiting_for=tell))

    assert outcome.verdict is Verdict.DONE
    assert waits_for[0] == "a disruption budget to allow the eviction of default/web-2"
    assert api.pods_on("node-1") == []


async def test_a_budget_that_never_lets_go_is_named_when_the_time_is_up(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.add_pod("web-1")
    api.budgets.append(Budget("default", "web", allowed=0))
    hook = drain(service, token)

    outcome = await hook.run(a_call(limit=timedelta(seconds=2)))
    back = await undone(hook, outcome)

    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.detail == (
        "still waiting for a disruption budget to allow the eviction of default/web-1"
    )
    assert api.pods_on("node-1") == ["web-1"]
    assert back.detail == "uncordoned node-1"


async def test_pods_that_do_not_end_are_named_when_the_time_is_up(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    for number in range(7):
        api.add_pod(f"web-{number}")
        api.endless.add(f"web-{number}")

    outcome = await drain(service, token).run(a_call(limit=timedelta(seconds=2)))

    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.detail.startswith("still waiting for pods to end: default/web-0")
    assert outcome.detail.endswith("default/web-4 and 2 more")
    evictions = [asked for asked in service.asked if asked.path.endswith("/eviction")]
    assert len(evictions) == 7


async def test_an_api_that_is_away_for_a_while_does_not_end_a_drain(
    api: KubernetesApi, token: Path
) -> None:
    api.add_pod("web-1")
    told = Told()
    trouble = iter([Reply(status=503, text="etcd has no leader")])

    def comes_back(asked: Asked) -> Reply:
        if asked.path.startswith("/api/v1/pods"):
            return next(trouble, None) or api.answer(asked)
        return api.answer(asked)

    with answering(comes_back) as service:
        outcome = await drain(service, token).run(a_call(told=told))

    assert outcome.verdict is Verdict.DONE
    assert told.waits_for[0] == "Kubernetes: Kubernetes answered 503: etcd has no leader"
    assert api.pods_on("node-1") == []


async def test_more_pods_than_one_page_go_too(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    for number in range(260):
        api.add_pod(f"web-{number}")

    outcome = await drain(service, token).run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert api.pods_on("node-1") == []


async def test_a_node_that_somebody_else_cordoned_stays_cordoned(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    """I30."""
    kubectl(service).patch_node("node-1", {"spec": {"unschedulable": True}})
    api.add_pod("web-1")
    hook = drain(service, token)

    outcome = await hook.run(a_call())
    back = await undone(hook, outcome)

    assert outcome.detail == "node-1 was already cordoned, evicted its pods"
    assert api.pods_on("node-1") == []
    assert back.detail == "node-1 was not cordoned for this event, and stays as it is"
    assert is_cordoned(api)


async def test_an_undo_after_a_crash_needs_no_notes(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    """I30: what was cordoned, and for which event, is written on the node itself."""
    hook = drain(service, token, evict=False)
    await hook.run(a_call())

    stranger = await undone(hook, HookOutcome(verdict=Verdict.INTERRUPTED), another())
    still = is_cordoned(api)
    ours = await undone(hook, HookOutcome(verdict=Verdict.INTERRUPTED))

    assert "was not cordoned for this event" in stranger.detail
    assert still
    assert ours.detail == "uncordoned node-1"
    assert not is_cordoned(api)


async def test_a_node_cordoned_for_two_events_waits_for_the_last(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    hook = drain(service, token, evict=False)

    first = await hook.run(a_call())
    second = await hook.run(another())
    both = cordoned_by(api)
    one_over = await undone(hook, first)
    still = is_cordoned(api), cordoned_by(api)
    both_over = await undone(hook, second, another())

    assert both == f"{EVENT} {OTHER_EVENT}"
    assert one_over.detail == "node-1 stays cordoned for another event"
    assert still == (True, OTHER_EVENT)
    assert both_over.detail == "uncordoned node-1"
    assert not is_cordoned(api)


async def test_a_node_that_changes_under_our_hands_is_read_again(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    changes = iter(range(3))

    def heartbeat(node: Object) -> None:
        for _ in changes:
            api.touch(node)
            return

    api.before_patch = heartbeat
    hook = drain(service, token, evict=False)

    outcome = await hook.run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert cordoned_by(api) == EVENT
    assert [asked.method for asked in service.asked].count("PATCH") == 4


async def test_whoever_cordons_in_the_same_moment_is_the_one_who_did(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    """I30: a change that lost the race must not take the other's cordon for ours."""

    def cordon(node: Object) -> None:
        api.before_patch = None
        node["spec"]["unschedulable"] = True
        api.touch(node)

    api.before_patch = cordon
    hook = drain(service, token, evict=False)

    outcome = await hook.run(a_call())
    await undone(hook, outcome)

    assert outcome.detail == "node-1 was already cordoned"
    assert cordoned_by(api) is None
    assert is_cordoned(api)


async def test_a_node_that_never_stays_the_same_is_a_failure(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.before_patch = api.touch

    outcome = await drain(service, token).run(a_call())

    assert (outcome.verdict, outcome.detail) == (
        Verdict.FAILED,
        "node node-1 changes too often to be cordoned",
    )
    assert not is_cordoned(api)


async def test_a_pod_of_the_same_name_elsewhere_is_left_alone(
    api: KubernetesApi, token: Path
) -> None:
    """A StatefulSet's pod comes back on another node while we still look at the old one."""
    api.add_pod("db-0", owner="StatefulSet")

    def moves_first(asked: Asked) -> Reply:
        if asked.path.endswith("/eviction"):
            api.pods.clear()
            api.add_pod("db-0", owner="StatefulSet", node="node-2")
        return api.answer(asked)

    with answering(moves_first) as service:
        outcome = await drain(service, token).run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert api.pods_on("node-2") == ["db-0"]


@pytest.mark.parametrize(
    ("forbidden", "problem"),
    [
        (("patch", "nodes"), "the agent's service account may not patch nodes"),
        (("list", "pods"), "the agent's service account may not list pods"),
        (("create", "pods/eviction"), "the agent's service account may not create pods/eviction"),
    ],
)
async def test_check_names_what_the_account_may_not(
    api: KubernetesApi,
    service: Service,
    token: Path,
    forbidden: tuple[str, str],
    problem: str,
) -> None:
    hook = drain(service, token)
    fine = await hook.check()

    api.forbidden.add(forbidden)

    assert fine == []
    assert await hook.check() == [problem]


async def test_what_kubernetes_refuses_is_a_failure_in_its_words(
    api: KubernetesApi, service: Service, token: Path
) -> None:
    api.forbidden.add(("patch", "nodes"))
    unknown = a_hook("kubernetes", server=service.url, node="none", token_file=str(token))

    forbidden = await drain(service, token).run(a_call())
    missing = await unknown.run(a_call())
    stranger = await drain(service, Path("/etc/hostname")).run(a_call())

    assert forbidden.detail == (
        'Kubernetes answered 403: nodes "node-1" is forbidden: User "agent" cannot patch resource'
    )
    assert missing.detail == "Kubernetes has no node none"
    assert stranger.detail == "Kubernetes answered 401: Unauthorized"
    assert await unknown.check() == ["Kubernetes has no node none"]


async def test_an_undo_waits_for_an_api_that_is_away(api: KubernetesApi, token: Path) -> None:
    """I30: however few retries the file allows, a node must not stay cordoned for ever."""
    trouble = iter([Reply(status=503), Reply(status=503)])

    def comes_back(asked: Asked) -> Reply:
        return api.answer(asked) if is_up else next(trouble, api.answer(asked))

    is_up = True
    with answering(comes_back) as service:
        hook = drain(service, token, evict=False, retries=0)
        outcome = await hook.run(a_call())
        is_up = False
        back = await undone(hook, outcome)

    assert (back.verdict, back.detail) == (Verdict.DONE, "uncordoned node-1")
    assert next(trouble, None) is None


async def test_in_a_cluster_its_own_variables_and_files_are_enough(
    api: KubernetesApi, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = provide(tmp_path, names=["127.0.0.1"], now=wall_clock())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    with api.serving(tls) as service:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(urlsplit(service.url).port))
        monkeypatch.setenv("NODE_NAME", "node-1")
        trusting = a_hook("kubernetes", token_file=str(token), ca_file=str(certificate.authority))
        stranger = a_hook("kubernetes", token_file=str(token), ca_file="/etc/hostname")

        outcome = await trusting.run(a_call())
        refused = await stranger.run(a_call())

    assert outcome.verdict is Verdict.DONE, outcome
    assert refused.verdict is Verdict.FAILED


async def test_outside_of_a_cluster_the_file_has_to_say_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    outcome = await a_hook("kubernetes").run(a_call())

    assert outcome.detail == "not running in a cluster: set server to the API server's URL"
