"""What a VM sees: the listener that Azure has at 169.254.169.254.

Nothing here can create, cancel or show another scope's events. Who calls is told by the socket's
peer address, never by a header.
"""
