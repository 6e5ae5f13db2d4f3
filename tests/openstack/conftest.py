"""One Nova for all tests of a module, which run in one worker. VMs of earlier tests are still there.

To start Nova takes 4 seconds of a processor, so all that `make test` asks of it is in test_nova.
"""

from collections.abc import Iterator

import pytest

from forewarned.actuators.openstack.session import Cloud
from tests.openstack.lab import SECRET, Nova, nova_process


@pytest.fixture(scope="module")
def shared_nova(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nova]:
    secret_file = tmp_path_factory.mktemp("cloud") / "openstack.secret"
    secret_file.write_text(f"{SECRET}\n")
    with nova_process() as url:
        cloud = Cloud(
            auth_url=f"{url}/identity/v3",
            credential_id="forewarned",
            secret_file=str(secret_file),
            region="lab",
        )
        yield Nova(url=url, cloud=cloud)


@pytest.fixture
def nova(shared_nova: Nova) -> Iterator[Nova]:
    yield shared_nova
    shared_nova.lab("mend")
