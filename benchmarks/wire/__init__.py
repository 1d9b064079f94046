"""What answers cost on their way to clients, beside what an engine takes to write the same rows to a file.

May import: everything.
Read first: `fetched_keys.py`.
"""
