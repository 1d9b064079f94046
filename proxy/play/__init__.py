"""The playground: a game about a made-up building whose counts are published with noise. It reads no data: a table of
an owner's own is handed to it, by `keyhole play --policy` alone.

May refuse: nothing; what it is asked wrongly it says by itself, and pages pass it on.
May import: nothing else of proxy.
Read first: `game.py`.
"""
