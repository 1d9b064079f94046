"""The policy file `keyhole.toml`: read, checked, and compiled to a `Catalog`.

May refuse: KH001, KH002, KH003, KH004, KH005, KH006, KH007, KH010, KH601, KH603.
May import: `parser`, `catalog` and below.
Read first: `file.py`.
"""
