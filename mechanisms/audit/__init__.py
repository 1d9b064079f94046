"""An auditor that tries to prove the running mechanisms not private, and measures the error rates of answers.

May refuse: `Unachievable`.
May import: `registry` and below.
Read first: `auditor.py`.
"""
