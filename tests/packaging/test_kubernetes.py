"""The Kustomize bases: every field is one that Kubernetes has, and programs start as they say."""

import subprocess
from pathlib import Path
from typing import Any, Final

import kubernetes.client.models
import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package
from pydantic import ValidationError

from forewarned.agent.config.settings import load as load_agent
from forewarned.control.startup.files import load_startup
from forewarned.runtime.settings import load as load_settings
from tests.docs.pages import Block, blocks
from tests.packages import need

ROOT: Final = Path(__file__).resolve().parents[2]
BASES: Final = ROOT / "packaging" / "kubernetes"
MODELS: Final = {
    ("v1", "Namespace"): "V1Namespace",
    ("v1", "Service"): "V1Service",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("apps/v1", "DaemonSet"): "V1DaemonSet",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("apps/v1", "StatefulSet"): "V1StatefulSet",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "V1ClusterRole",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "V1ClusterRoleBinding",
    ("rbac.authorization.k8s.io/v1", "Role"): "V1Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "V1RoleBinding",
}
FILES: Final = sorted(path for path in BASES.glob("*/*.yaml") if path.name != "kustomization.yaml")


def documents(path: Path) -> list[Any]:  # what YAML is made of
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def mistakes(document: Any) -> list[str]:
    """What the API's own types, which the client is generated from, don't allow."""
    model = getattr(kubernetes.client.models, MODELS[document["apiVersion"], document["kind"]])
    try:
        model.model_validate(document, strict=True, extra="forbid")
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_field_is_one_that_kubernetes_has(path: Path) -> None:
    assert [wrong for document in documents(path) for wrong in mistakes(document)] == []


def test_the_check_refuses_what_kubernetes_would() -> None:
    [_, *rest] = documents(BASES / "server" / "services.yaml")
    rest[0]["spec"]["portz"] = rest[0]["spec"].pop("ports")
    rest[1]["spec"]["ports"][0]["port"] = "8170"

    found = [each for document in rest for each in mistakes(document)]

    assert found == [
        "spec.portz: Extra inputs are not permitted",
        "spec.ports.0.port: Input should be a valid integer",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_container_has_more_than_it_needs(path: Path) -> None:
    for document in documents(path):
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in pod.get("containers", ()):
            limits = container["securityContext"]

            assert limits["readOnlyRootFilesystem"] is True
            assert limits["allowPrivilegeEscalation"] is False
            assert limits["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("base", ["server", "emulator"])
def test_a_server_starts_with_its_arguments_and_its_files(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BASES / base)
    [workload] = [
        each
        for path in FILES
        if path.parent.name == base
        for each in documents(path)
        if each["kind"] in {"StatefulSet", "Deployment"}
    ]
    [container] = workload["spec"]["template"]["spec"]["containers"]
    [command, *arguments] = container["args"]
    flags = dict(each.removeprefix("--").split("=", 1) for each in arguments)
    file = BASES / base / Path(flags.pop("config", "none")).name

    resolved = load_settings(
        flags={name.replace("-", "_"): value for name, value in flags.items()},
        environ={},
        path=file if file.exists() else None,
    )

    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    settings = resolved.settings
    assert command == "serve"
    assert settings.arm is not None
    assert ports == {
        "metadata": settings.metadata.port,
        "control": settings.control.port,
        "arm": settings.arm.port,
    }
    assert container["readinessProbe"]["httpGet"].get("scheme", "HTTP") == (
        "HTTPS" if settings.control_is_tls else "HTTP"
    )


def test_the_files_of_the_bases_can_be_read() -> None:
    agent = load_agent(BASES / "agent" / "agent.toml", environ={})
    assert {rule.name for rule in agent.rules} == {"short freeze", "eviction", "all else"}
    fleet = load_startup([BASES / "emulator" / "fleet.toml"]).plan
    assert fleet is not None
    assert fleet.size() == 2


@pytest.mark.thorough
@pytest.mark.parametrize("base", ["agent", "server", "emulator"])
def test_kustomize_builds_each_base(base: str) -> None:
    kubectl = need("kubectl")

    built = subprocess.run(
        [kubectl, "kustomize", BASES / base], capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr
    found = [w for document in yaml.safe_load_all(built.stdout) for w in mistakes(document)]
    assert found == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "block",
    [each for each in blocks() if each.title == "kustomization.yaml"],
    ids=lambda b: b.place,
)
def test_kustomize_builds_each_overlay_that_a_page_shows(block: Block, tmp_path: Path) -> None:
    kubectl = need("kubectl")
    (tmp_path / "forewarned").symlink_to(ROOT)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(block.text)
    (overlay / "agent.toml").write_text("# of this overlay\n")

    built = subprocess.run(
        [kubectl, "kustomize", overlay], capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr
    documents = list(yaml.safe_load_all(built.stdout))
    assert [wrong for document in documents for wrong in mistakes(document)] == []
    assert "image: registry.example/forewarned:" in built.stdout
    assert ("# of this overlay" in built.stdout) == ("agent.toml" in block.text)
    assert ("nodeSelector:" in built.stdout) == ("nodeSelector" in block.text)
