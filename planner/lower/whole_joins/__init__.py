"""Joins that read the same whichever rows a question asks for, and conditions that are asked before them all the same.

Refuses nothing. May import the catalog and `planner.lower`'s rows, keys and dialects. Read `fences.py` first.
"""
