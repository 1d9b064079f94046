"""An auditor that tries to prove the running mechanisms not private, and what an answer's error rates really were.

May refuse: `Unachievable`.
May import: `registry` and below.
Read first: `auditor.py`.
"""
