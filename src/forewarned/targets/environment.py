"""This program's environment: variables, its account's home directory, its host's name.

The only module of hooks and targets that reads it. Read at each use, so that making a hook has no
side effects.
"""

import os
import socket
import sys
from typing import Final

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def search_path() -> str:
    """Where programs are looked for, as the operator has set it."""
    return os.environ.get("PATH", _PATH)


def home() -> str:
    """Of the account, not `$HOME`: it is the same however this program was started."""
    if sys.platform == "win32":
        return os.path.expanduser("~")  # noqa: PTH111 - as text, like the other
    import pwd  # noqa: PLC0415 - which Windows has not

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        # A container may run under a number that has no name.
        return "/"


def node_name() -> str:
    """Of the Kubernetes node: `$NODE_NAME`, or else the host's name in lower case."""
    return os.environ.get("NODE_NAME") or socket.gethostname().lower()


def cluster_address() -> str | None:
    """Of the Kubernetes API, from the variables that every pod has; None outside of a cluster."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if not host:
        return None
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
