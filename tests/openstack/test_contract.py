"""The OpenStack driver meets the contract of all drivers, on a real Nova."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from forewarned.actuators.driver import Action, Driver, Vm
from forewarned.actuators.openstack.driver import OpenStackDriver
from forewarned.actuators.openstack.vocabulary import EFFECTS, Word
from forewarned.core.model import EventType
from tests.actuators.contract import DriverContract
from tests.openstack.lab import Nova

SOON = timedelta(milliseconds=50)
_COUNTED = {
    Word.LIVE_MIGRATE: "live-migration",
    Word.COLD_MOVE: "migrate",
    Word.HARD_REBOOT: "reboot",
    Word.SOFT_REBOOT: "reboot",
    Word.STOP: "stop",
    Word.DELETE: "delete",
}


def an_action(
    do: str, *, otherwise: str | None = None, patience: timedelta | None = None
) -> Action:
    return Action(
        type=EventType.REBOOT,
        do=do,
        effect=EFFECTS[do],
        otherwise=otherwise,
        otherwise_effect=None if otherwise is None else EFFECTS[otherwise],
        patience=patience,
    )


@dataclass(kw_only=True)
class NovaStage:
    action: Action
    nova: Nova
    vm: Vm
    keeps_marks: bool = True
    sees_vms: bool = True

    def driver(self) -> Driver:
        return OpenStackDriver(self.nova.cloud, pause=SOON)

    def actions(self) -> int:
        self.nova.lab("mend")
        return self.nova.actions(self.vm).count(_COUNTED[Word(self.action.do)])

    def break_(self) -> None:
        self.nova.lab("break")


class TestOpenStack(DriverContract):
    # All others are in test_driver too: a VM takes a second to make.
    @pytest.fixture(
        params=[
            Word.LIVE_MIGRATE,
            pytest.param(Word.COLD_MOVE, marks=pytest.mark.thorough),
            pytest.param(Word.HARD_REBOOT, marks=pytest.mark.thorough),
        ]
    )
    def stage(self, request: pytest.FixtureRequest, nova: Nova) -> NovaStage:
        return NovaStage(action=an_action(request.param), nova=nova, vm=nova.create())
