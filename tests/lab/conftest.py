"""One lab for the tests of a module: its libvirts and guests take a while to start."""

from collections.abc import Iterator

import pytest

from tests.packages import give_up, need_libvirt_library
from tools.lab.lab import Lab, lab
from tools.lab.packages import NoLabError


@pytest.fixture(scope="module")
def the_lab() -> Iterator[Lab]:
    need_libvirt_library()
    try:
        with lab() as made:
            yield made
    except NoLabError as error:
        give_up(str(error))
