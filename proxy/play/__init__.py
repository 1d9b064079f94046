"""The playground: a game about a made-up building.

It reads no data except a table that `keyhole play --policy` hands it.

May refuse: nothing; what it is asked wrongly it says by itself, and pages pass it on.
May import: nothing else of proxy.
Read first: `game.py`.
"""
