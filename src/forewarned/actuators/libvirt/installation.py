"""Whether libvirt's Python library is installed. Can be imported without it."""

from importlib.util import find_spec


class LibvirtMissingError(Exception):
    def __init__(self) -> None:
        super().__init__(
            "libvirt's Python library is not installed: run `apt install libvirt-dev gcc"
            " pkg-config python3-dev` (or what your system calls them), then"
            " `pip install 'forewarned[libvirt]'`"
        )


def require() -> None:
    """Raises LibvirtMissingError."""
    if find_spec("libvirt") is None:
        raise LibvirtMissingError
