"""Every small wrong edit that a machine can make: `python -m tools.mutants.machine`.

The catalogue next door has edits that a person chose, one for each promise. Here they are made by
rules, wherever a rule applies, in the modules of which a mistake costs users most. The working tree
is only ever read: an edit lives in the memory of one process.
"""
