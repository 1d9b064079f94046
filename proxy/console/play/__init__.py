"""The playground's pages and the routes of their scripts, in the console and in `keyhole play`.

May refuse: KH406, KH408.
May import: `play` and the console's own pages.
Read first: `routes.py`.
"""
