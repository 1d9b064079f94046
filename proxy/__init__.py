"""Sockets and shells around the rest: wire protocol, sessions, shadow, sources, pipeline, REST, the command line.

May refuse: every code of `docs/errors.md`.
May import: everything but `benchmarks`.
Read first: `pipeline/stages.py`.
"""
