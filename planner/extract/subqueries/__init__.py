"""Subqueries and WITH queries that only filter, project and join, merged into the SELECT that reads them.

It changes text alone, and refuses nothing: what it does not understand is refused where a question is cut out. It may
import the parser and what `bind` knows of FROM and of select lists.
"""
