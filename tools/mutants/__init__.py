"""Small wrong edits, each of which a test must catch: `python -m tools.mutants`.

A test that has never failed proves little. Each edit breaks one promise in a copy of the tree, and
the tests of that promise are run there. The working tree is only ever read.
"""
