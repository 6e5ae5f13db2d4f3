"""Systems that no test runs on: what can be known of Windows and macOS from here.

`make types` checks types for both, of the SDK, the agent and the plugin.
"""

import subprocess
import sys
from typing import Final

import pytest

# Modules of the standard library, and packages, that Windows has not.
ABSENT: Final = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "uvloop")


@pytest.mark.parametrize(
    "module",
    [
        "forewarned.client",
        "forewarned.agent.assembly",
        "forewarned.cli.agent.commands",
        "forewarned.testing.plugin",
        "forewarned.testing._service",
    ],
)
def test_sdk_agent_and_plugin_import_nothing_that_windows_lacks(module: str) -> None:
    code = f"import sys; sys.modules |= dict.fromkeys({ABSENT}); import {module}"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("agent check", "the agent runs on Linux and macOS, not on Windows"),
        ("run --as web -- true", "'forewarned run' needs Linux"),
    ],
)
def test_what_windows_has_not_is_refused_with_a_sentence(words: str, refusal: str) -> None:
    code = (
        "import asyncio, sys; import forewarned.cli; sys.platform = 'win32';"
        f"sys.argv[1:] = {words.split()}; forewarned.cli.main()"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert refusal in done.stderr
