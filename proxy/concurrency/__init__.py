"""Work beside the event loop: fair queues, threads, leases, cancelling, signals, and the end of a process.

May refuse: KH409, KH900.
May import: `wire` and below.
Read first: `thread_pool.py`.
"""
