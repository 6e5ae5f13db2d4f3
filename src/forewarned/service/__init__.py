"""Use cases: load a scope, decide, save, then tell.

Every change goes this one way, whether a VM, an operator, an actuator or the clock causes it.
"""
