"""TLS certificates, what unknown users are told at a login, how often logins may fail, and which addresses count as one
neighbour.

May refuse: KH012.
May import: `wire`, `observe`, `play` and below.
Read first: `tls.py`.
"""
