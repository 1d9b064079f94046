"""The experiments of PeGaSus's chapter, with what it was compared with, what it was not, and what is corrected.

May import: `mechanisms`, `benchmarks.experiments`.
Read first: `__main__.py`.
"""
