"""The stand-in for the Kubernetes API, held against the official client."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.agent.hooks.kubernetes_api import TOKEN, Budget, KubernetesApi


@pytest.fixture
def api() -> KubernetesApi:
    made = KubernetesApi()
    made.add_node("node-1")
    return made


# Any: a module.
@pytest.fixture
def client() -> Any:
    # Takes two seconds, which only who runs these tests has to wait.
    from kubernetes import client

    return client


# Any: what it answers is looked at by each test.
@pytest.fixture
def core(api: KubernetesApi, client: Any) -> Iterator[Any]:
    with api.serving() as service:
        yield client.CoreV1Api(connected(client, service.url))


def connected(client: Any, url: str) -> Any:
    configuration = client.Configuration(host=url)
    configuration.api_key["authorization"] = f"Bearer {TOKEN}"
    return client.ApiClient(configuration)


def evict(client: Any, core: Any, name: str, uid: str | None = None) -> Any:
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid)) if uid else None
    return core.create_namespaced_pod_eviction(
        name,
        "default",
        client.V1Eviction(
            api_version="policy/v1",
            kind="Eviction",
            metadata=client.V1ObjectMeta(name=name, namespace="default"),
            delete_options=options,
        ),
    )


def test_every_change_gives_a_new_version_and_no_change_does_not(core: Any) -> None:
    before = core.read_node("node-1").metadata.resource_version

    cordoned = core.patch_node("node-1", {"spec": {"unschedulable": True}})
    again = core.patch_node("node-1", {"spec": {"unschedulable": True}})

    assert cordoned.spec.unschedulable is True
    assert cordoned.metadata.resource_version != before
    assert again.metadata.resource_version == cordoned.metadata.resource_version


def test_a_change_that_names_an_old_version_is_a_conflict(core: Any, client: Any) -> None:
    old = core.read_node("node-1")
    core.patch_node("node-1", {"metadata": {"annotations": {"a": "b"}}})

    with pytest.raises(client.ApiException) as patched:
        core.patch_node(
            "node-1",
            {
                "metadata": {"resourceVersion": old.metadata.resource_version},
                "spec": {"unschedulable": True},
            },
        )
    with pytest.raises(client.ApiException) as replaced:
        core.replace_node("node-1", old)

    assert (patched.value.status, patched.value.reason) == (409, "Conflict")
    assert replaced.value.status == 409
    assert core.read_node("node-1").spec.unschedulable is None


def test_null_takes_an_annotation_away_and_leaves_the_others(core: Any) -> None:
    core.patch_node("node-1", {"metadata": {"annotations": {"mine": "x"}}})
    core.patch_node("node-1", {"metadata": {"annotations": {"mine": None}}})

    assert core.read_node("node-1").metadata.annotations == {"other": "stays"}


def test_pods_of_a_node_come_in_pages(api: KubernetesApi, core: Any) -> None:
    for number in range(5):
        api.add_pod(f"web-{number}")
    api.add_pod("elsewhere-1", node="node-2")
    asked = {"field_selector": "spec.nodeName=node-1", "limit": 2}

    found, more = [], None
    while True:
        page = core.list_pod_for_all_namespaces(**asked, **({"_continue": more} if more else {}))
        found += [pod.metadata.name for pod in page.items]
        more = page.metadata._continue
        if not more:
            break

    assert found == [f"web-{number}" for number in range(5)]


def test_an_evicted_pod_is_seen_as_it_ends(api: KubernetesApi, core: Any, client: Any) -> None:
    api.add_pod("web-1")

    assert evict(client, core, "web-1").kind == "Status"
    ending = core.list_pod_for_all_namespaces().items
    gone = core.list_pod_for_all_namespaces().items

    assert [pod.metadata.deletion_timestamp is not None for pod in ending] == [True]
    assert gone == []
    with pytest.raises(client.ApiException) as missing:
        evict(client, core, "web-1")
    assert missing.value.status == 404


def test_a_budget_that_has_none_left_answers_429(
    api: KubernetesApi, core: Any, client: Any
) -> None:
    api.add_pod("web-1")
    api.add_pod("web-2")
    api.budgets.append(Budget("default", "web", allowed=1))

    evict(client, core, "web-1")
    with pytest.raises(client.ApiException) as held:
        evict(client, core, "web-2")

    assert (held.value.status, held.value.reason) == (429, "Too Many Requests")


def test_two_budgets_for_a_pod_are_an_error(api: KubernetesApi, core: Any, client: Any) -> None:
    api.add_pod("web-1")
    api.budgets += [Budget("default", "web", 1), Budget("default", "web", 1)]

    with pytest.raises(client.ApiException) as failed:
        evict(client, core, "web-1")

    assert failed.value.status == 500


def test_another_pod_of_the_same_name_is_not_evicted(
    api: KubernetesApi, core: Any, client: Any
) -> None:
    api.add_pod("web-1")
    old = core.list_pod_for_all_namespaces().items[0].metadata.uid
    api.add_pod("web-1", node="node-2")

    with pytest.raises(client.ApiException) as conflict:
        evict(client, core, "web-1", uid=old)

    assert conflict.value.status == 409


def test_nobody_is_let_in_without_the_token(api: KubernetesApi, client: Any) -> None:
    with api.serving() as service, pytest.raises(client.ApiException) as refused:
        client.CoreV1Api(client.ApiClient(client.Configuration(host=service.url))).read_node("a")

    assert refused.value.status == 401


def test_who_may_do_what_can_be_asked(api: KubernetesApi, client: Any) -> None:
    api.forbidden.add(("create", "pods/eviction"))
    with api.serving() as service:
        reviews = client.AuthorizationV1Api(connected(client, service.url))

        def may(verb: str, resource: str, subresource: str | None = None) -> object:
            attributes = client.V1ResourceAttributes(
                verb=verb, resource=resource, subresource=subresource
            )
            spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
            body = client.V1SelfSubjectAccessReview(spec=spec)
            status = reviews.create_self_subject_access_review(body).status
            assert status is not None
            return status.allowed

        assert may("patch", "nodes") is True
        assert may("create", "pods", "eviction") is False
