"""Discrete Laplace noise, drawn exactly, and its gradual release.

May refuse: `Unachievable`.
May import: `protocol` and below.
Read first: `exact.py`.
"""
