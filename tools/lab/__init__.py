"""Two hypervisors with libvirt and real guests, in namespaces of this machine.

Needs root, Linux on x86-64, and Debian's packages; no KVM. Nothing of it is reachable from outside.
"""
