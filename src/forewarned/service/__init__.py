"""Use cases: load a scope, decide, save, then tell.

Every change goes this one way, whoever asks for it: a VM, a person, an actuator, or time.
"""
