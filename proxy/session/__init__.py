"""One client's session after its login: statements pass to the shadow, and Keyhole answers questions.

May refuse: KH100, KH106, KH109, KH404, KH410.
May import: `owner` and below.
Read first: `session.py`.
"""
