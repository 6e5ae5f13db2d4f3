"""Mutants of what tells VMs of a hypervisor apart."""

from typing import Final

from tools.mutants.mutant import Mutant

HYPERVISORS: Final = (
    Mutant(
        name="address-beats-the-port",
        file="service/fleet/declaration.py",
        old="    if port_mark is not None:\n",
        new="    if port_mark is not None and address is None:\n",
        breaks="S3: a VM that has a port mark is known by its address, which another can take",
        tests=("tests/service/fleet/test_plan.py",),
    ),
    Mutant(
        name="marks-left-unread",
        file="runtime/listeners/port_marks.py",
        old="    except FileNotFoundError:\n",
        new="    except FileNotFoundError:\n        return None\n",
        breaks="S17: a server that can't read marks starts all the same",
        tests=("tests/runtime/listeners/test_port_marks.py",),
    ),
    Mutant(
        name="every-host-approves",
        file="feed/hosts/view.py",
        old="        return caller.name in self._vms.get(caller.scope_id, ())",
        new="        return bool(caller.name)",
        breaks="S3, S11: a hypervisor approves in the name of another's VM",
        tests=("tests/feed/hosts/test_host_feed.py",),
    ),
    Mutant(
        name="every-host-reads",
        file="feed/hosts/view.py",
        old="if page.scope_id in self._vms]",
        new="if page.scope_id]",
        breaks="S3: a hypervisor is told of documents of VMs that are elsewhere",
        tests=("tests/feed/hosts/test_host_feed.py",),
    ),
    Mutant(
        name="moved-vms-unheard-of",
        file="feed/hosts/view.py",
        old="            self._here(saved.scope) != self._vms.get(saved.scope.id, frozenset())",
        new="            not self._here(saved.scope)",
        breaks="I25: a VM that is moved to a host is not served there",
        tests=("tests/feed/hosts/test_host_feed.py",),
    ),
    Mutant(
        name="any-certificate-will-do",
        file="security/host_certificates.py",
        old="    context.verify_mode = ssl.CERT_REQUIRED",
        new="    context.verify_mode = ssl.CERT_NONE",
        breaks="S12: whoever reaches the feed is let in",
        tests=("tests/feed/hosts/test_host_feed.py",),
    ),
)
