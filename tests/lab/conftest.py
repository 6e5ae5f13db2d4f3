"""One lab for all tests of this folder, and one service with its guests: they take a while to start.

`tests/forked_workers.py` has one worker run this folder.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.lab.service import Service, service_with_guests
from tests.packages import give_up, need_libvirt_library
from tools.lab.lab import Lab, lab
from tools.lab.packages import NoLabError


@pytest.fixture(scope="package")
def the_lab() -> Iterator[Lab]:
    need_libvirt_library()
    try:
        with lab() as made:
            yield made
    except NoLabError as error:
        give_up(str(error))


@pytest.fixture(scope="package")
def service(the_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Tests leave its events ended and its guests polling, on either host."""
    with service_with_guests(the_lab, tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def migrations(the_lab: Lab) -> "Iterator[Counter[str]]":
    """How often libvirt says that a guest has come to another host, since the test began."""
    from tests.lab.migrations import counted_migrations  # it needs libvirt, which the lab has

    with counted_migrations(the_lab) as counted:
        yield counted
