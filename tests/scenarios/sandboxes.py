"""Whether this machine allows namespaces."""

import shutil
import subprocess

import pytest


def _is_allowed() -> bool:
    words = ["unshare", "--net", "--map-current-user", "true"]
    return bool(shutil.which("unshare")) and not subprocess.run(words, check=False).returncode


needs_namespaces = pytest.mark.skipif(not _is_allowed(), reason="no namespaces are allowed here")
