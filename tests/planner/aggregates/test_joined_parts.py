"""Windows parted by columns of a joined public table, against PostgreSQL: which groups are in one part."""

from dataclasses import replace

import psycopg

from tests.planner.asked import asked
from tests.worlds.retail import REGIONS, retail

EXPRESSIONS = (
    "r.region",
    "upper(r.region)",
    "coalesce(r.region, 'none')",
    "r.region = 'West'",
    "r.region IS NULL",
    "length(r.region)",
    "left(r.name, 1)",
    "CASE WHEN r.region IN ('West', 'west') THEN 1 ELSE 2 END",
)
WORLDS = (
    REGIONS.rows,
    (("France", "west"), ("Germany", "West"), ("Norway", "West"), ("United Kingdom", "west")),
    (("France", None), ("Germany", "Mid"), ("Norway", None), ("United Kingdom", "Mid")),
    (("France", "West"), ("Germany", None), ("Norway", "Far "), ("United Kingdom", "Far")),
)


def test_groups_of_one_part_are_those_of_postgresql(postgres_url: str) -> None:
    """NULL is a part of its own, and spelling counts. A group without a row in the table has NULL."""
    sizes = "SELECT s.country, count(*) AS n, avg(count(*)) OVER (PARTITION BY {}) AS m"
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMP TABLE regions (name text, region text)")
        for rows in WORLDS:
            connection.execute("TRUNCATE regions")
            connection.cursor().executemany("INSERT INTO regions VALUES (%s, %s)", rows)
            catalog = replace(retail(), public_tables=(replace(REGIONS, rows=rows),))
            for written in EXPRESSIONS:
                source = "sales s JOIN regions r ON r.name = s.country GROUP BY s.country, r.region, r.name"
                question = asked(
                    f"SELECT country FROM ({sizes.format(written)} FROM {source}) q WHERE n > m", catalog=catalog
                )
                (countries,) = question.keys.values
                found = {
                    country: {countries[place] for place in places}
                    for country, places in zip(
                        countries, question.functionals[0].cell_reads[1].cells.used_places, strict=True
                    )
                }
                peers = f"SELECT name, array_agg(name) OVER (PARTITION BY {written}) FROM regions r".encode()
                assert found == {name: {*others} for name, others in connection.execute(peers)}, (written, rows)
