"""Numbers alone: exact noise, threshold tests, apportionment, Keyhole's mechanisms beside the published ones.

May refuse: `Unachievable` and `Denied`, which the others turn into KH303 and KH307.
May import: numpy and scipy.
Read first: `protocol.py`.
"""
