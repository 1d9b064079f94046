"""The playground: a game about a made-up building whose counts are published with noise. It never reads private data.

May refuse: nothing; what it is asked wrongly it says by itself, and pages pass it on.
May import: nothing else of proxy.
Read first: `game.py`.
"""
