"""The fleet as Azure's control plane names it: VMs, scale sets, availability sets, groups."""
