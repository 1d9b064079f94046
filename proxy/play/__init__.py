"""The playground: a game about an invented building.

The only real data is the table of `keyhole play --policy`, if an owner starts it so.

May refuse: nothing; what it is asked wrongly it says by itself, and pages pass it on.
May import: nothing else of proxy.
Read first: `game.py`.
"""
