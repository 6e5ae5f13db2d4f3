"""VMs of libvirt: carrying events out on them, and listing them. Needs the extra `libvirt`.

Only `installation` and the modules that say so can be imported without it.
"""
