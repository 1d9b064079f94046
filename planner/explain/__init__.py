"""Explanation of a plan: EXPLAIN as text, JSON and SVG, and the sentence that guarantees an answer.

May refuse: nothing; a plan can always be explained.
May import: `rankings` and below.
Read first: `render.py`.
"""
