"""Pages for people: the fleet and its events, live, and forms that cause them.

It calls the same use cases as the control API and decides nothing.
"""
