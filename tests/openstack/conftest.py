"""One Nova for all tests of a worker. VMs of earlier tests are still there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarned.actuators.openstack.session import Cloud
from tests.openstack.lab import SECRET, Nova, nova_process


@pytest.fixture(scope="session")
def nova_url() -> Iterator[str]:
    with nova_process() as url:
        yield url


@pytest.fixture
def nova(nova_url: str, tmp_path: Path) -> Iterator[Nova]:
    secret_file = tmp_path / "openstack.secret"
    secret_file.write_text(f"{SECRET}\n")
    cloud = Cloud(
        auth_url=f"{nova_url}/identity/v3",
        credential_id="forewarned",
        secret_file=str(secret_file),
        region="lab",
    )
    nova = Nova(url=nova_url, cloud=cloud)
    yield nova
    nova.lab("mend")
