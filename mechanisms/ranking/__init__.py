"""The first keys in the order of a noisy value that is never shown: `ORDER BY count(*) DESC LIMIT 5`.

May refuse: `Unachievable`.
May import: `threshold`, `publishing` and below.
Read first: `ranking_task.py`.
"""
