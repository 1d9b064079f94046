"""Rows with scores, counted by cells for a release.

Read first: `score_counts.py`, the statement; `row_number.py` has what one row says.
"""
