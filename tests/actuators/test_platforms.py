"""The platform that other tests use meets the contract of all drivers."""

from dataclasses import dataclass, field

import pytest

from forewarned.actuators.driver import Action, Driver, DriverError, Effect, Vm
from tests.actuators.contract import DriverContract
from tests.actuators.desks import WEB_0
from tests.actuators.platforms import Platform, PlatformDriver
from tests.actuators.test_decision import TYPES


@dataclass(kw_only=True)
class PlatformStage:
    action: Action
    vm: Vm = WEB_0
    keeps_marks: bool = True
    sees_vms: bool = True
    platform: Platform = field(default_factory=Platform)

    def driver(self) -> Driver:
        return PlatformDriver(self.platform)

    def actions(self) -> int:
        return len(self.platform.actions)

    def break_(self) -> None:
        self.platform.failures = [DriverError("broken")] * 100


class TestPlatform(DriverContract):
    @pytest.fixture(params=Effect)
    def stage(self, request: pytest.FixtureRequest) -> PlatformStage:
        effect: Effect = request.param
        return PlatformStage(action=Action(type=TYPES[effect], do="it", effect=effect))
