"""Questions over data in a lakehouse: what Keyhole adds to the work of its engine.

May import: everything.
Read first: `own_share.py`.
"""
