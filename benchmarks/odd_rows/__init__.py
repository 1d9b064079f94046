"""The time that odd rows take: one row with the worst values, and keys that all rows share, beside ordinary tables.

May import: the whole product.
Read first: `worst_row.py`.
"""
