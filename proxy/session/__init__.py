"""The session of one client after its login. Statements pass to the shadow, and Keyhole answers questions.

May refuse: KH100, KH106, KH109, KH404, KH410.
May import: `owner` and below.
Read first: `session.py`.
"""
