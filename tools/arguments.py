"""What arguments of the tools may be."""

import argparse


def at_least_one(text: str) -> int:
    """For argparse's `type`."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)
