"""Monitors at work: who looks when, what a look does, and what is told of it to those who wait.

May refuse: nothing.
May import: `pipeline` and below.
Read first: `__init__.py`.
"""
