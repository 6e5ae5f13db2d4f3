"""What users install, built from a clone: `python -m tools.release KIND…`, or `make dist`.

Invariant: the same tree gives the same bytes, wherever and whenever it is built.
"""
