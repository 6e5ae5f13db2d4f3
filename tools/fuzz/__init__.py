"""Gives the readers of the product inputs that no one thought of, and sees what they make of them.

Each target is a function of bytes that raises what is a defect: an error of another type than the
reader's own, or a law that is broken. atheris looks for bytes that reach code which none has
reached before. Where it is not installed, the same functions get mutations of their examples.
"""
