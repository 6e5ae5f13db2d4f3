from datetime import timedelta
from pathlib import Path

import pytest

from notbefore import offspring
from notbefore.settings import load

FLAGS: list[dict[str, object]] = [
    {},
    {"mode": "service", "rate": "0.25", "hosts": "a.test,b.test", "max_user_events": "10"},
    {"clock": "paused", "silence": "90m", "first_call_delay": "1500ms", "default_vm": "web"},
    {"clock": "0.5x", "fleet": "none.toml", "metadata": "[::1]:8169", "workers": "3"},
    {"mode": "service", "arm": "off"},
    {"mode": "service", "control": "0.0.0.0:8170", "control_access": "token"},
    {"arm": "[::1]:0"},
    {"data": "none", "log_format": "json", "address_range": "10.1.0.0/16"},
]


@pytest.mark.parametrize("flags", FLAGS)
def test_a_child_has_the_very_settings_of_its_supervisor(flags: dict[str, object]) -> None:
    resolved = load(flags=flags, environ={})

    told = offspring.brief(
        resolved, supervisor=1, listener=3, metadata_url="http://127.0.0.1:1", pollers=2
    )

    assert told.resolved() == resolved


def test_a_fleet_file_with_the_name_of_nothing_is_still_a_file(tmp_path: Path) -> None:
    named = tmp_path / "notbefore.toml"
    named.write_text('fleet = "./none"\nfreeze_impact = "7s"\n')

    resolved = load(flags={}, environ={}, path=named)
    told = offspring.brief(resolved, supervisor=1, listener=3, metadata_url="", pollers=1)

    assert told.resolved().settings.fleet == tmp_path / "none"
    assert told.resolved().settings.freeze_impact == timedelta(seconds=7)
