"""The start of the `keyhole` command, measured beside the start of a Python that does nothing.

May import: the whole product.
Read first: `start.py`.
"""
