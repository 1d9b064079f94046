"""The meaning of a privacy loss for a person: odds, guesses, shares of a group, attackers' posteriors.

May refuse: nothing. A number out of its range is the caller's mistake.
May import: `threshold`, `publishing` and below.
Read first: `advantage.py`.
"""
