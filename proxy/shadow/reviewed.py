"""The check that a server has only reviewed functions. For each of these it is known if analysts may call it."""

from typing import LiteralString

import psycopg

from planner.errors import KeyholeError
from proxy.shadow.binaries import SUPPORTED

REVIEWED = "0cb970c434e3ec343bcd84160dcebfe834e34f017505155fd2e1638bba4c626a"
"""Of the names and arguments of all functions of PostgreSQL 18. Its minor releases bring none, however they are built;
tests/attacks/reviewed_functions.txt has those that analysts may call and that do more than compute."""
_FUNCTIONS: LiteralString = """
    SELECT encode(sha256(convert_to(string_agg(f, chr(10) ORDER BY f COLLATE "C"), 'UTF8')), 'hex') FROM (
        SELECT proname || '(' || oidvectortypes(proargtypes) || ')' AS f
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    ) AS functions
"""


def check_functions_reviewed(connection: psycopg.Connection) -> None:
    """Raise KH013 unless the server has exactly the reviewed functions and was built without assertions."""
    version = connection.info.server_version // 10_000
    if version != SUPPORTED or connection.execute(_FUNCTIONS).fetchone() != (REVIEWED,):
        raise KeyholeError(
            "KH013",
            "the shadow's PostgreSQL has functions that were not reviewed",
            detail=f"They differ from those of PostgreSQL {SUPPORTED}, so the version or the maker is another one.",
            hint=f"Use a release of PostgreSQL {SUPPORTED} as the PostgreSQL project publishes it.",
        )
    if connection.execute("SHOW debug_assertions").fetchone() != ("off",):
        raise KeyholeError(
            "KH013",
            "the shadow's PostgreSQL was built with assertions",
            detail="An assertion that fails ends everybody's sessions, and a statement may make one fail.",
            hint="Use a build without --enable-cassert.",
        )
