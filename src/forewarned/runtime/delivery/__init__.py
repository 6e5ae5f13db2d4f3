"""How documents reach VMs: from a Board in the process that decides, or in another."""
