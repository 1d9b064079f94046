"""Statements put together of pieces: values of units, lists, keys, joins and windows beside each other."""
