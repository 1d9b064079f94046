"""The playground's pages and what their scripts ask, in the console and by `keyhole play` alone.

May refuse: KH406, KH408.
May import: `play` and the console's own pages.
Read first: `routes.py`.
"""
