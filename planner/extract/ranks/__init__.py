"""Ranks around a question: what ranks by the sizes of a grouped subquery, or asks for its largest, as places inside.

It changes text alone, and refuses nothing: what it does not understand is refused where a question is cut out. It may
import the parser, the scorecard's ranks, and what `push_down_thresholds` reads of a subquery.
"""
