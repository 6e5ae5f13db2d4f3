"""`python -m tools.fuzz.v1 SECONDS FOLDER`: requests made from the OpenAPI description of /v1.

schemathesis makes sequences of requests that fit the description and of requests that don't, and
holds the answers against it. Run by `python -m tools.fuzz`, with the packages of .venv-fuzz. What
it remembers is in the folder.
"""

import subprocess
import sys
from typing import Final

from tests.control.control_thread import ControlThread

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
"""What the description promises. Which bodies are refused is for the rules to say, not for it."""

LASTING: Final = r"^/v1/(changes|requests|tasks/claim)$"
"""Server-sent events: the description has the JSON of each, and schemathesis wants their lines. And
a request that waits for longer than schemathesis does."""


def main(seconds: str, folder: str) -> int:
    with ControlThread() as control:
        command = [*requests_to(control.url, "fuzz"), "--max-time", seconds]
        return subprocess.run(command, cwd=folder, check=False).returncode


def requests_to(url: str, how: str) -> list[str]:
    """The command that sends requests made from the description of the server at this URL."""
    return [
        *(sys.executable, "-m", "schemathesis.cli", how, f"{url}/v1/openapi.json"),
        *("--checks", ",".join(CHECKS), "--exclude-path-regex", LASTING),
        *("--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"),
    ]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
