"""A hypervisor: a namespace with bridges, at whose ports VMs are, as namespaces too. Needs root."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final

from tests.end_to_end.namespaces import METADATA, inside, ip, within
from tests.end_to_end.server_process import DOCUMENT, Answer

_PATIENCE: Final = 1.5
"""Seconds: a few attempts of TCP to connect. What gets an answer gets it in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A VM, whose user is root there."""

    namespace: str
    mac: str

    def take(self, address: str) -> None:
        """Have this address from now on, and no other."""
        ip("-n", self.namespace, "addr", "flush", "dev", "eth0")
        ip("-n", self.namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", self.namespace, "route", "replace", f"{METADATA}/32", "dev", "eth0")

    def read(self) -> Answer:
        """Raises OSError if nothing comes."""
        return within(self.namespace, lambda: _ask("GET", None))

    def approve(self, event_id: str) -> Answer:
        """Raises OSError if nothing comes."""
        body = json.dumps({"StartRequests": [{"EventId": event_id}]})
        return within(self.namespace, lambda: _ask("POST", body))

    def events(self) -> list[str]:
        """Ids of those that it reads."""
        answer = self.read()
        assert answer.status == 200, answer
        return [event["EventId"] for event in answer.json["Events"]]


@dataclass(slots=True, kw_only=True)
class Hypervisor:
    namespace: str
    _stack: contextlib.ExitStack

    def bridge(self, name: str) -> None:
        ip("-n", self.namespace, "link", "add", name, "type", "bridge")
        ip("-n", self.namespace, "link", "set", name, "up")

    def guest(self, interface: str, bridge: str, address: str) -> Guest:
        name = f"{self.namespace}-{interface}"
        _add(self._stack, name)
        cable = ("type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", self.namespace, "link", "add", interface, *cable)
        ip("-n", self.namespace, "link", "set", interface, "master", bridge, "up")
        ip("-n", name, "link", "set", "eth0", "up")
        shown = self.output(*inside(name), "cat", "/sys/class/net/eth0/address")
        guest = Guest(namespace=name, mac=shown.strip())
        guest.take(address)
        return guest

    def run(self, *words: str, stdin: str | None = None) -> str:
        """A command in its namespace."""
        return self.output(*inside(self.namespace), *words, stdin=stdin)

    @staticmethod
    def output(*words: str, stdin: str | None = None) -> str:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout


@contextlib.contextmanager
def hypervisor() -> Iterator[Hypervisor]:
    """With the metadata address, and no bridge yet. All goes away with the namespaces."""
    # Names of their own, so that two runs of the tests don't meet.
    name = f"fw{os.getpid()}-hv"
    with contextlib.ExitStack() as stack:
        _add(stack, name)
        ip("-n", name, "addr", "add", f"{METADATA}/32", "dev", "lo")
        made = Hypervisor(namespace=name, _stack=stack)
        # Where two networks have the same addresses, only marks tell which way back is the right one.
        made.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
        made.run("sysctl", "-qw", "net.ipv4.conf.default.rp_filter=0")
        yield made


def _add(stack: contextlib.ExitStack, namespace: str) -> None:
    ip("netns", "add", namespace)
    stack.callback(ip, "netns", "del", namespace)
    ip("-n", namespace, "link", "set", "lo", "up")


def _ask(method: str, body: str | None) -> Answer:
    connection = HTTPConnection(METADATA, 80, timeout=_PATIENCE)
    with contextlib.closing(connection):
        headers = {"Metadata": "true", "Content-Type": "application/json"}
        connection.request(method, DOCUMENT, body, headers)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(status=response.status, headers=found, body=response.read())
