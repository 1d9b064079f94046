"""The experiments of MIDE, ProBE and MiM, run with Keyhole's mechanisms beside the published ones.

May import: `mechanisms` and what a task needs of the rest.
Read first: `__main__.py`.
"""
