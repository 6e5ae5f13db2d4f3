"""Runs three nodes on PostgreSQL for an hour under steady use, and judges whether anything grows.

What is wrong only after a long time is a leak: of memory, of descriptors, of rows that nothing
removes. So the load is the same in every minute, and nothing that is counted may be more at the end
than it was at the beginning.
"""
