"""Use cases: load a scope, decide, save, then tell.

Every change takes this one path, whether a VM, an operator, an actuator or time asks for it.
"""
