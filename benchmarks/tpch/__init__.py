"""TPC-H with the customer as the protected unit: its queries as threshold questions, beside the plain queries.

May import: the whole product.
Read first: `__main__.py`.
"""
