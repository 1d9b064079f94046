"""Experiments on private bounds: ways of finding the bound that few customers exceed, on Online Retail.

May import: everything.
Read first: `__main__.py`.
"""
