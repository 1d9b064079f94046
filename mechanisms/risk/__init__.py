"""What a privacy loss means for a person: odds, guesses, shares of a group that can be learned, attackers' posteriors.

May refuse: nothing; a number out of its range is the caller's mistake.
May import: `threshold`, `release` and below.
Read first: `advantage.py`.
"""
