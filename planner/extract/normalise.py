"""Statements as people and tools write them, brought to the form of a question before anything is cut out of them.

First `list_joined_units` makes lists of privacy units of joins that only say whose rows count, `inline_listed_queries`
writes WITH queries into lists, and `split_joined_lists` makes several of one over a join. `join_mixed_lists` joins
lists that stand beside conditions on rows, and `join_own_values` scalar subqueries over a unit's own rows.
`move_out_of_values` leaves plain values in the subqueries of units, `pull_up_joins` merges a subquery that joins
tables, or stands in a join, into the query that reads it, `drop_calendars`, `drop_filtered_calendars` and
`drop_calendars_beside_groups` write a calendar's columns as keys, `join_both_sides` makes outer joins of private
tables inner ones where that means the same, and `read_private_first` puts the private table of one with a public one
first. `drop_laterals` and `inline_one_row_queries` write a joined query of one row where it is read, and
`inline_grouped_queries` a grouped one that a scalar subquery reads.
`join_looked_up_groups` joins a group that a scalar subquery looks up, and `write_self_joins_as_windows` makes windows
over groups of joins of a grouped query with itself.

These rules move what means the same in another place, in the statement's text:

- `inline_public_lists`: a subquery over a public table after IN, into a list of its pinned values;
- `inline_public_values`: one that counts or adds up a public table, into the number that it is;
- `move_out_correlations`: what a question says of columns from outside of it, into a query around the question;
- `pull_up_subqueries`: what a subquery or WITH query that only filters and projects says of a private table, into the
  query that reads it;
- `spell_out_windows`: the windows of a WINDOW clause, where they are used;
- `spell_out_listed_texts` and `spell_out_simple_cases`: a text that GROUP BY computes, as a CASE of conditions;
- `merge_groupings`: a grouped subquery whose groups are put together again, into the query that does;
- `move_keys_to_where`: what HAVING says of keys beside windows over groups, into WHERE;
- `push_down_ranks`: a rank by a size of a grouped subquery, from the query around it into its select list;
- `rank_by_shares`: a rank by a share of a total, as a rank by the size;
- `push_down_predicates`: a threshold that the query around a grouped subquery shows, into its select list;
- `merge_window_queries`: a query with windows over the sizes of a grouped subquery, into the subquery;
- `push_through_queries`: a threshold around ranks or several queries, and what is computed of sizes, into the subquery;
- `push_down_thresholds`: a threshold in the WHERE around a grouped subquery, into its HAVING;
- `write_outer_totals_as_windows`: a scalar subquery around a grouped subquery, into a window of the subquery;
- `write_totals_as_windows`: a scalar subquery over the question's own table, into a window over its groups;
- `write_out_grouping_sets`: ROLLUP, CUBE and GROUPING SETS, into one SELECT for each grouping.

Two say which thresholds a band counts, so that it is a scorecard's, and none of the sizes that are moved or refused:

- `spell_out_band_columns`: the columns of bands that tools drag;
- `spell_out_bands`: width_bucket of an aggregate, as comparisons.

`drop_having_of_rows` leaves out a HAVING that says of a scorecard's groups what is true of all in PostgreSQL.

Then `group_by_listed_keys` gives a GROUP BY to what lists keys without one.

    SELECT c FROM (SELECT country AS c FROM sales WHERE gift) v GROUP BY c HAVING count(*) > 5
    SELECT v.country AS c FROM sales v WHERE gift GROUP BY v.country HAVING count(*) > 5

A part that cannot be moved stays, and is refused or answered as it stands. So does what would make the statement many
times as long: a column of a subquery may be read twice in the next one, and so on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.band_extraction import drop_having_of_rows, spell_out_band_columns, spell_out_bands
from planner.extract.groupings.merge_groupings import merge_groupings
from planner.extract.inline_public_lists import inline_public_lists, inline_public_values
from planner.extract.key_domains import group_by_listed_keys, write_out_grouping_sets
from planner.extract.move_out_correlations import move_out_correlations
from planner.extract.open_text_keys import spell_out_listed_texts, spell_out_simple_cases
from planner.extract.outer_joins.drop_calendars import drop_calendars, drop_filtered_calendars
from planner.extract.outer_joins.drop_calendars_beside_groups import drop_calendars_beside_groups
from planner.extract.outer_joins.join_both_sides import join_both_sides
from planner.extract.outer_joins.read_private_first import read_private_first
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_predicates import push_down_predicates
from planner.extract.push_down_thresholds import push_down_thresholds
from planner.extract.ranks.expand_stars import expand_stars
from planner.extract.ranks.push_down_ranks import push_down_ranks
from planner.extract.ranks.push_through_queries import push_through_queries
from planner.extract.ranks.rank_above_all import rank_above_all
from planner.extract.ranks.rank_by_shares import rank_by_shares
from planner.extract.ranks.rank_largest import rank_largest
from planner.extract.relations import list_private_tables
from planner.extract.subqueries.inline_grouped_queries import inline_grouped_queries
from planner.extract.subqueries.inline_one_row_queries import drop_laterals, inline_one_row_queries
from planner.extract.subqueries.join_looked_up_groups import join_looked_up_groups
from planner.extract.subqueries.merge_window_queries import merge_window_queries
from planner.extract.subqueries.move_keys_to_where import move_keys_to_where
from planner.extract.subqueries.pull_up_joins import pull_up_joins
from planner.extract.subqueries.pull_up_subqueries import pull_up_subqueries
from planner.extract.subqueries.spell_out_windows import spell_out_windows
from planner.extract.subqueries.write_outer_totals_as_windows import write_outer_totals_as_windows
from planner.extract.subqueries.write_self_joins_as_windows import write_self_joins_as_windows
from planner.extract.subqueries.write_totals_as_windows import write_totals_as_windows
from planner.extract.unit_lists.inline_listed_queries import inline_listed_queries
from planner.extract.unit_lists.join_mixed_lists import join_mixed_lists
from planner.extract.unit_lists.list_joined_units import list_joined_units
from planner.extract.unit_lists.split_joined_lists import split_joined_lists
from planner.extract.unit_values.join_own_values import join_own_values
from planner.extract.unit_values.move_out_of_values import move_out_of_values
from planner.parser.edited_query import EditedQuery
from planner.parser.edits import MOST_ADDED, Edit, are_disjoint, count_growth
from planner.parser.tree import ParsedQuery

MOST_STEPS = 48  # each step reads the statement anew; what is nested deeper than that is left as it is
MOST_TIMES = 8  # how many times as long a statement may become: a column may be read twice at every level
MOST_READ = 1_000_000  # characters read in all steps together; as each step reads all, time would grow with the square
Rule: TypeAlias = Callable[[PrivateRead], tuple[Edit, ...]]
RULES: tuple[Rule, ...] = (
    inline_public_lists,
    inline_public_values,
    move_out_correlations,
    pull_up_subqueries,
    spell_out_windows,
    spell_out_listed_texts,
    spell_out_simple_cases,
    spell_out_band_columns,
    spell_out_bands,
    drop_having_of_rows,
    merge_groupings,
    expand_stars,
    rank_above_all,
    rank_largest,
    move_keys_to_where,
    push_down_ranks,
    rank_by_shares,
    write_outer_totals_as_windows,
    push_down_predicates,
    merge_window_queries,
    push_through_queries,
    push_down_thresholds,
    write_totals_as_windows,
    write_out_grouping_sets,
)
FIRST_RULES: tuple[Rule, ...] = (
    list_joined_units,
    inline_listed_queries,
    split_joined_lists,
    join_mixed_lists,
    join_own_values,
    move_out_of_values,
    pull_up_joins,
    drop_calendars,
    drop_filtered_calendars,
    drop_calendars_beside_groups,
    join_both_sides,
    read_private_first,
    drop_laterals,
    inline_one_row_queries,
    inline_grouped_queries,
    join_looked_up_groups,
    write_self_joins_as_windows,
)
LAST_RULES: tuple[Rule, ...] = (group_by_listed_keys,)
OTHER_GROUPS = write_totals_as_windows.__name__  # of a query of its own, without the calendar
CALENDAR_RULES = frozenset((drop_calendars.__name__, drop_calendars_beside_groups.__name__))


@dataclass(frozen=True, slots=True)
class _FiredRule:
    """The change of one rule in a query.

    `added_characters` is the number of characters by which it repeats parts of the query.
    """

    rule: Rule
    changes: tuple[Edit, ...]
    added_characters: int


def normalise(read: EditedQuery, catalog: Catalog) -> EditedQuery:
    """Rewrite the query by every rule that applies, one after the other. After each rule the query is parsed again.

    Guarantee: PostgreSQL returns the same rows for both queries, with two exceptions. A list of keys without DISTINCT
    shows each key once. An outer join that keeps public rows returns the same rows only if each public row has private
    rows. A band column exists in no source; it is read as if every row of a group had the group's band.

    Raises KH101 if the query around a question shows a size.
    """
    room, reading = min(MOST_TIMES * len(read.query.text), MOST_ADDED), MOST_READ
    for _ in range(MOST_STEPS):
        reading -= len(read.query.text)
        if reading < 0:
            break
        try:
            step = next(_list_steps(read.query, catalog, room=room), None)
        except KeyholeError as error:
            raise read.origin.place_error(error) from None
        if step is None:
            break
        room -= step.added_characters
        read = read.edit(step.changes, rule=step.rule.__name__)
    return read


def _list_steps(query: ParsedQuery, catalog: Catalog, *, room: int) -> Iterator[_FiredRule]:
    """Yield the changes of rules where private tables are read, as long as repeated text has room."""
    every = [
        PrivateRead(query, node.parent.parent, node, table, catalog)
        for node, table in list_private_tables(query, catalog)
        if isinstance(node.parent, exp.From | exp.Join)
        and isinstance(node.parent.parent, exp.Select)
        and node.parent.parent.args.get("from_") is not None  # the parser reads SELECT ... JOIN, too
    ]
    yield from _fire_rules(every, FIRST_RULES, room=room)
    reads = [read for read in every if isinstance(read.node.parent, exp.From)]
    # the last rules turn to what only lists keys, once it can no longer become part of a question
    for rules in (RULES, LAST_RULES):
        yield from _fire_rules(reads, rules, room=room)


def _fire_rules(reads: Sequence[PrivateRead], rules: Sequence[Rule], *, room: int) -> Iterator[_FiredRule]:
    for read in reads:
        for rule in rules:
            changes = rule(read)
            if not changes or not are_disjoint(changes):
                continue
            # a list of pinned values is written once, so its length counts for nothing
            grown = 0 if rule is inline_public_lists else max(count_growth(changes), 0)
            if grown <= room:
                yield _FiredRule(rule, changes, grown)
