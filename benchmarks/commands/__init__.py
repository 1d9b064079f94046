"""What the `keyhole` command costs before it does any work, beside a Python that does nothing.

May import: the whole product.
Read first: `start.py`.
"""
