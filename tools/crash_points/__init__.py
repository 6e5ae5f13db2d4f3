"""Kills a part of the product at each system call that writes or syncs, and checks what is left.

Also a full disk and an I/O error at each of them. The calls are counted in a run that nothing
happens to; strace then makes one of them fail, or kills the process in front of it, in a run of its
own for each. A process that is killed between two calls leaves the disk as one that is killed in
front of the second, so these are all the states that a kill can leave.
"""
