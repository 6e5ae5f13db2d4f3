"""The process that Apprise runs in. Its order is JSON on standard input; what went wrong is a line
on standard output. `apprise` starts it.

Where it may connect to is checked by an audit hook, which sees the address that a socket is given:
no plugin gets around that, and what a name resolves to a moment later does not matter (S1). The
same hook lets it open nothing but Python's own files: there are plugins that send a file whose name
is in the URL. What a URL asks for is judged by what Apprise has made of it: no one else reads URLs
as it does.
"""

import json
import logging
import mimetypes
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from typing_extensions import override

from forewarned.targets.addresses import Reach, refusal
from forewarned.targets.urls import hidden_whole

if TYPE_CHECKING:
    import apprise

_CONNECTING: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTING: Final = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}
)
_LOGGING: Final = frozenset({"syslog.openlog", "syslog.syslog"})
_FILES: Final = frozenset({"template", "keyfile", "subfile", "pgpkey", "pgppub", "pgpprv"})
"""What plugins call files in a URL. Some have ids of templates, which have no slash."""
_UNUSABLE: Final = "Apprise can't use this URL: see its list of services for what it must look like"


class _Fence:
    """Refuses what leaves `reach`, and remembers the first thing it refused."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._own = (*map(os.path.realpath, [*filter(None, sys.path), *mimetypes.knownfiles]),)
        self.refused = ""

    # Any: arguments of whatever event.
    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _CONNECTING:
            why = self._why_not(args[1])
        elif event == "open":
            self._refuse_file(args[0])
            return
        elif event in _LOGGING:
            why = "it is on this machine"
        elif event in _STARTING:
            why = "it tried to run a program"
        else:
            return
        if why is not None:
            self.refused = self.refused or why
            raise PermissionError(why)

    def _refuse_file(self, path: object) -> None:
        """Not remembered: some look for files, such as `.netrc`, that they do without."""
        if isinstance(path, str | bytes | os.PathLike):
            name = os.path.realpath(os.fsdecode(path))
            if not any(name == own or name.startswith(f"{own}{os.sep}") for own in self._own):
                raise PermissionError("it may not open files")

    def _why_not(self, address: object) -> str | None:
        if address is None:  # a socket that is connected already
            return None
        if not isinstance(address, tuple):
            return "it is on this machine"
        return refusal(str(address[0]), self._reach)


class _Lines(logging.Handler):
    """What Apprise says while it works: the last of it tells why it failed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


# Any: what JSON holds.
def main(order: dict[str, Any]) -> str:
    """Why it failed; empty if it did not."""
    import apprise  # noqa: PLC0415  # here alone: it is an extra, and takes half a second

    lines = _Lines()
    logger = logging.getLogger("apprise")
    logger.addHandler(lines)
    logger.propagate = False
    # Nothing is kept on disk: tokens that plugins get would be. And no pictures: those who read a
    # message would fetch them from Apprise's own site.
    asset = apprise.AppriseAsset(
        app_id="Forewarned",
        app_desc="Forewarned",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        storage_mode="memory",
        async_mode=False,
    )
    service = apprise.Apprise(asset=asset)
    fence = None
    if order["reach"] is None:
        why_not = "" if service.add(order["url"]) else _UNUSABLE
    else:
        fence = _Fence(Reach(order["reach"]))
        sys.addaudithook(fence.hook)
        why_not = _why_not_added(service, order["url"])
    if why_not and not (fence and fence.refused):
        return why_not
    if order["mode"] == "check":
        return ""
    # As text: whatever an event says is then no link and no mention in a chat (S15).
    sent = service.notify(
        title=order["title"], body=order["body"], body_format=apprise.NotifyFormat.TEXT
    )
    if fence is not None and fence.refused:
        return f"not allowed as a target: {fence.refused}"
    return "" if sent else hidden_whole(order["url"], lines.last or "it did not accept the message")


def _why_not_added(service: "apprise.Apprise", url: str) -> str:
    """Add it as the only service, if it asks for nothing that a server may not do."""
    import apprise  # noqa: PLC0415  # as above
    from apprise.plugins import url_to_dict  # noqa: PLC0415
    from apprise.utils.parse import parse_urls  # noqa: PLC0415

    urls = parse_urls(url)  # type: ignore[no-untyped-call]  # Apprise has types in parts only
    if len(urls) > 1:
        return "it has several URLs: add a subscription for each of them"
    made = url_to_dict(urls[0]) if urls else None  # type: ignore[no-untyped-call]  # as above
    if made is None:
        return _UNUSABLE
    if _names_file(made.get("qsd", {})):
        return "its URL names a file on this machine, which is not allowed: omit the file"
    plugin = apprise.Apprise.instantiate(made, asset=service.asset)
    if plugin is None:
        return _UNUSABLE
    if not plugin.verify_certificate:
        return "its URL turns off certificate checks, which is not allowed: omit verify"
    service.add(plugin)
    return ""


def _names_file(options: Mapping[str, str]) -> bool:
    """Before a plugin has them: whether the file is there must not be found out either."""
    return any("/" in _unquoted(options.get(name, "")) for name in _FILES)


def _unquoted(text: str) -> str:
    """Plugins unquote some options twice."""
    while (once := unquote(text)) != text:
        text = once
    return text


if __name__ == "__main__":
    _why = main(json.load(sys.stdin))
    if _why:
        sys.stdout.write(f"{_why}\n")
        sys.exit(1)
