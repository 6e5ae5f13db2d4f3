"""Measurements anyone can repeat: ratios against a limit, taken side by side in one run.

`make bench` is `python -m benchmarks`. The server is a real process, reached over HTTP and the
command line only: nothing here imports the product.
"""
