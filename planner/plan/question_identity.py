"""The identity of a question: the canonical text of everything on which its answer depends, and the digest."""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from mechanisms.formula import Cut, Formula
from planner.catalog.catalog import Column, Computed, Lookup, MergedKeys, Product, SqlType, Table, ValueGroups
from planner.catalog.listed_values import digest_texts
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.functionals.cells import OWN_GROUP, find_cell_reach
from planner.functionals.functional_identity import identify_functional, identify_sum
from planner.functionals.per_key_offsets import LIMIT
from planner.lower.contribution_bounds import exceeds_groups
from planner.question.condition_text import write_canonical
from planner.question.products import remove_products
from planner.question.public_knowledge import find_knowledge
from planner.question.question import Functional, Question, Ranked, UnitRows

FORMAT = "keyhole question 2"
PATH_FORMAT = "keyhole path 1"


def identify_paths(question: Question, *, digest: str) -> tuple[str | None, ...]:
    """Return, by functional, an identity of its exact values in one data version.

    It is a sha256 in hex of all that decides these values. For functionals that read several groups, the identities are
    those of the sums that they read.

    Guarantee: functionals of two questions with equal identities have the same value in every key that both have, and
    the same sensitivity. So formula, thresholds (those of each group's own, too), tolerances, rates, the mechanism, the
    order of the keys and their restriction are left out. Included are the digest of the policy and pinned data, table,
    unit, bounding, the keys' whole domains, and the filter. The identity is None if another functional of the same
    question has the same one, since each needs its own noise. It is also None if the thresholds of its groups are too
    far apart for `subtract_offsets`.

    Parameters:
        question: minimised, as in a plan.
        digest: the catalog's.
    """
    common = "\n".join(_list_value_lines(question, digest))
    parts, leaving = list_noisy_parts(question), list_shareable(question)
    if reads_cells(question):
        leaving = tuple(part.offsets is None for part in parts)
    return tuple(
        sha256(f"{common}\nfunctional {identify_sum(part)}".encode()).hexdigest() if leaves else None
        for part, leaves in zip(parts, leaving, strict=True)
    )


def list_noisy_parts(question: Question) -> tuple[Functional, ...]:
    """Return the functionals of a question that get noise: the functionals themselves, or the sums that they read."""
    return list_cell_sums(question)[0] if reads_cells(question) else question.functionals


def takes_off_numbers(question: Question) -> bool:
    """Return True if a number of each group's own is subtracted from some sum of a question."""
    read = (one.summed for functional in question.functionals for one in functional.cell_reads)
    return any(one.offsets is not None for one in (*question.functionals, *read))


def list_shareable(question: Question) -> tuple[bool, ...]:
    """Return, by functional, True if its noise has an identity that other questions can share: see `identify_paths`.

    A functional has no noise of its own if it is computed from common sums, or reads several groups.
    """
    if question.common or reads_cells(question):
        return (False,) * len(question.functionals)
    summed = [identify_sum(functional) for functional in question.functionals]
    return tuple(
        summed.count(one) == 1 and _can_be_put_back(functional)
        for one, functional in zip(summed, question.functionals, strict=True)
    )


def _can_be_put_back(functional: Functional) -> bool:
    return functional.offsets is None or functional.offsets.largest <= LIMIT


def _list_value_lines(question: Question, digest: str) -> Iterator[str]:
    yield PATH_FORMAT
    yield digest
    yield from _list_table_lines(question.table)
    for column, values in sorted(
        zip(question.keys.columns, question.keys.values, strict=True), key=lambda key: key[0].identity
    ):
        domain = values if column.domain is None else column.domain
        yield f"key {_write_column(column)} {len(domain)} {digest_texts(domain)}"
    if question.per_unit is not None:
        yield from _list_unit_rows_lines(question.per_unit)
    yield from _list_look_lines(question)
    yield f"where {write_canonical(question.where)}"


def find_fingerprint(question: Question) -> str:
    """Return the sha256 of a question's meaning, in hex.

    Guarantee: equal fingerprints mean the same distribution of answers on the same data. All of these agree: table,
    unit, bounding and its seed, columns' clipping and grids, keys in their order, filter, functionals, formula with
    tolerances, rates, mechanism and the settings that only some mechanisms use. `question` has been minimised and its
    functionals put into canonical order, so the order in which conditions were typed does not matter. A ranking's
    value, direction, limit and tolerance agree as well. A computed key is identified by how it numbers rows and how its
    groups are shown, whatever its text is.

    The keys of a unit that count may depend on the whole public domains, of which the question's keys are a part. Only
    then do the domains belong to its identity. An answer stored before a domain changed then belongs to another
    question.
    """
    return sha256("\n".join(_list_lines(question)).encode()).hexdigest()


def _list_lines(question: Question) -> Iterator[str]:
    keys = question.keys.identities
    yield FORMAT
    yield from _list_table_lines(question.table)
    for column, values in zip(question.keys.columns, question.keys.values, strict=True):
        yield f"key {column.identity} {len(values)} {digest_texts(values)}"
    yield from _list_chosen_domains(question)
    yield from _list_cell_rule(question)
    if question.per_unit is not None:
        yield from _list_unit_rows_lines(question.per_unit)
    yield from _list_look_lines(question)
    yield f"where {write_canonical(question.where)}"
    for functional in question.functionals:
        yield f"functional {identify_functional(functional, keys)}"
    for functional in question.common:
        yield f"read off {identify_functional(functional, keys)}"
    yield f"formula {_write_formula(question.formula)}"
    for predicate in question.predicates:
        yield f"predicate {_write_formula(predicate)}"
    yield from _list_known_truths(question, keys)
    if question.ranked is not None:
        yield from _describe_ranking(question.ranked, keys)
    accuracy = question.accuracy
    yield f"accuracy fnr={accuracy.fnr!r} fpr={accuracy.fpr!r} mechanism={accuracy.mechanism}"
    if accuracy.most_positives is not None:
        yield f"most positives {accuracy.most_positives}"
    for index, known in enumerate(find_knowledge(question)):
        if known is not None:
            far, near = f"{known.far_keys} by {known.far_distance}", f"{known.near_keys} by {known.near_distance}"
            yield f"known f{index} far {far} near {near}"


def _list_known_truths(question: Question, keys: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each place at which a predicate is false or NULL whatever the data."""
    for truth, known in (("false", question.publicly_false_keys), ("null", question.publicly_null_keys)):
        for number, found in enumerate(known):
            for key, places in found:
                yield f"predicate {number} {truth} by {keys[key]} at {','.join(map(str, places))}"
    for number, is_null in enumerate(question.null_predicates):
        if is_null:
            yield f"predicate {number} null"


def _describe_ranking(ranked: Ranked, keys: Mapping[str, str]) -> Iterator[str]:
    """Yield the ranking's measure and limit, and a second line if it returns more than the first few of all keys."""
    order = "falling" if ranked.descending else "rising"
    by = " over ".join(identify_functional(one, keys) for one in ranked.computed_functionals)
    if ranked.cells is not None:
        by += f" read as {identify_functional(ranked.functional, keys)} missing first={ranked.cells.puts_missing_first}"
    if ranked.mean is not None:
        by += f" of {ranked.mean.least_rows} times {ranked.mean.multiplier} within {ranked.mean.largest_distance}"
    yield f"the first {ranked.most_returned} by {by} {order} ~ {ranked.tolerance}"
    if ranked.partition or ranked.offset or ranked.may_cut_anywhere or ranked.keeps_every_row:
        parts = f"in each of {sorted(keys.get(name, name) for name in ranked.partition)!r} behind {ranked.offset}"
        yield f"{parts} any cut={ranked.may_cut_anywhere} every row={ranked.keeps_every_row}"


def _list_chosen_domains(question: Question) -> Iterator[str]:
    """Yield the whole domains of restricted keys, if a unit's rows may be in more keys than count."""
    table = question.table if question.per_unit is None else question.per_unit.table
    if table.is_row_unit or not exceeds_groups(table, question.keys):
        return
    for column, values in zip(question.keys.columns, question.keys.values, strict=True):
        if column.domain is not None and tuple(column.domain) != tuple(values):
            yield f"chosen among {column.identity} {len(column.domain)} {digest_texts(column.domain)}"


def _list_cell_rule(question: Question) -> Iterator[str]:
    """Yield the rule by which cells are charged, if it differs from that of a plain question.

    An answer that was charged by another rule belongs to another question.
    """
    reach = find_cell_reach(question)
    if reach != OWN_GROUP:
        yield f"cells everywhere={reach.reaches_other_groups} all={reach.changes_all_groups} doubled={reach.is_doubled}"


def _list_look_lines(question: Question) -> Iterator[str]:
    """Yield the rows that a look reads. A look at a standing question differs from a question about the whole table."""
    if (as_of := question.as_of) is not None:
        yield f"as of {as_of.column!r} before {as_of.before.isoformat()} open for {as_of.window_open_for}"
        yield f"windows {as_of.window!r} {as_of.hopping!r} {len(as_of.horizon)} {digest_texts(as_of.horizon)}"


def _list_unit_rows_lines(rows: UnitRows) -> Iterator[str]:
    yield "one row per unit and key of"
    yield from _list_table_lines(rows.table)
    yield f"rows where {write_canonical(rows.where)}"
    for total in rows.totals:
        present = "" if total.presence_count is None else identify_functional(total.presence_count)
        summed = identify_functional(total.functional)
        yield f"total {total.name!r} {total.low}..{total.high} {summed} where {present}"


def _list_table_lines(table: Table) -> Iterator[str]:
    cap = f"{table.row_cap.rows} by {table.row_cap.unique}" if table.row_cap else ""
    yield f"table {table.name!r} {table.relation!r} unit {table.unit!r} seed {table.seed!r} refresh {table.refresh!r}"
    yield f"bounding groups={table.groups_per_unit} rows={table.rows_per_unit} cap={cap!r}"
    if table.path is not None:
        yield f"unit by {table.path.from_columns!r} through {table.path.to_columns!r} of"
        yield from _list_table_lines(table.path.table)
        if table.path.added_columns:
            yield f"joined along it {table.path.added_columns!r}"
    for key in table.fixed:
        yield f"rows of {key.name!r} in {len(key.values)} {digest_texts(key.values)}"
    for column in sorted(remove_products(table).columns, key=lambda column: column.name):
        if not column.canonical:  # a column that has one is identified as a key
            yield _write_column(column)
    for member in table.members:
        yield f"joined on the unit {member.columns!r} of which a unit has {member.rows} rows at most"
        yield from _list_table_lines(member.table)
    for clause in table.lists:
        if len(clause) > 1:
            yield f"of units for which one of {len(clause)} holds:"
        for listed in clause:
            yield f"of units that are {'not ' if listed.is_negated else ''}listed by {listed.meaning} of"
            yield from _list_table_lines(listed.table)
    for own in table.own:
        yield f"with {own.meaning} of the unit's rows of"
        yield from _list_table_lines(own.table)


def _write_column(column: Column) -> str:
    match column.derivation:
        case _ if column.canonical:  # which says what puts a row into a group, and not how that is spelled
            source = ""
        case None:
            source = ""
        case Lookup(column=base, source=pinned):
            source = f"looked up in {pinned!r} by {base!r}"
        case ValueGroups() | MergedKeys() as made:
            source = f"groups {sha256(made.meaning.encode()).hexdigest()}"
        case Product(columns=factors):
            source = f"product of {factors!r}"
        case Computed(term):
            source = f"computed as {term!r}"
        case derived:
            source = f"{derived.function}({derived.part!r}, {derived.column!r})"
    return (
        f"column {column.identity!r} {column.declared!r} bounds={_write_range(column.bounds)} grid={column.grid}"
        f" per_unit={_write_range(column.per_unit)} derivation={source}"
        f"{f' longest={column.longest_text}' if column.sql_type is SqlType.TEXT else ''}"
    )


def _write_range(limits: tuple[object, object] | None) -> str:
    return f"{limits[0]}..{limits[1]}" if limits else ""


def _write_formula(formula: Formula) -> str:
    def literal(cut: Cut) -> str:
        return f"f{cut.functional} {'>' if cut.above else '<='} {cut.cut} ~ {cut.tolerance}"

    return formula.fold(
        literal,
        every=lambda children: f"all({', '.join(children)})",
        some=lambda children: f"any({', '.join(children)})",
    )
