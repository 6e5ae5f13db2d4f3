"""What hooks take from where the agent runs: three variables, its account's home, its host's name.

The only module of theirs that reads the environment. Read at each use, so that making a hook
touches nothing.
"""

import os
import pwd
import socket
from typing import Final

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def search_path() -> str:
    """Where programs are looked for: the operator's word."""
    return os.environ.get("PATH", _PATH)


def home() -> str:
    """Of the account, not the variable: it is the same however the agent was started."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        # A container may run under a number that has no name.
        return "/"


def node_name() -> str:
    """Of the Kubernetes node: as the pod was told, or else the host's, in lower case as nodes."""
    return os.environ.get("NODE_NAME") or socket.gethostname().lower()


def cluster_address() -> str | None:
    """Of the Kubernetes API, as every pod is told it; None outside of a cluster."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if not host:
        return None
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
