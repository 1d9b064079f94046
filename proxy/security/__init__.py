"""TLS certificates, mock users, limits on failed logins, and addresses that count as one neighbour.

May refuse: KH012.
May import: `observe`, `play` and below.
Read first: `tls.py`.
"""
