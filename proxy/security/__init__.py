"""TLS certificates, mock users, limits on failed logins, and groups of addresses.

May refuse: KH012.
May import: `observe`, `play` and below.
Read first: `tls.py`.
"""
