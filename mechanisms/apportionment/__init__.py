"""How a question's error rates are split over its tests: the published rules and Keyhole's.

May refuse: nothing.
May import: `protocol` and below.
Read first: `keyhole.py`.
"""
