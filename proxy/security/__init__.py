"""TLS certificates, what an unknown user's login looks like, and which addresses count as one neighbour.

May refuse: KH012.
May import: `wire`, `observe` and below.
Read first: `tls.py`.
"""
