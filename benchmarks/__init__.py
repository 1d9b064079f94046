"""What Keyhole costs, measured in the same run beside the plain engine, and the papers' experiments.

May import: everything.
Read first: `endpoint.py`.
"""
