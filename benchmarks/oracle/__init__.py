"""HAVING held against PostgreSQL on random tables: each statement planned, evaluated without noise, and compared.

May import: everything.
Read first: `judging.py`.
"""
