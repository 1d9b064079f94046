"""Questions in the place of a refused statement: hints that can be sent as they stand, one file for each kind.

A hint is a function of the statement and the catalog, and None where there is none; it refuses nothing. The files
beside this folder call it. Read first: `answerable_questions.py`.
"""
