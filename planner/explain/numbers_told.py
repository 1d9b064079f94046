"""Sentences about columns that ask for numbers: their content, what shows more, and an order that is not applied."""

from collections.abc import Iterator, Sequence

from planner.scope.embedded import NumberColumns


def write_number_notices(numbers: NumberColumns | None) -> tuple[str, ...]:
    """Return the notices for an answer with columns that ask for the size of groups. Return none for other answers."""
    return () if numbers is None else tuple(_write_sentences(numbers))


def write_numbers_json(numbers: NumberColumns | None) -> dict[str, object] | None:
    """Return the content of an answer's number columns, as a JSON document."""
    if numbers is None:
        return None
    columns = [{"name": one.name, "told": one.kind, "says": one.words} for one in numbers.columns]
    return {"columns": columns, "sentences": list(write_number_notices(numbers))}


def _write_sentences(numbers: NumberColumns) -> Iterator[str]:
    hidden = [one.name for one in numbers.columns if one.kind == "null"]
    proved = [one for one in numbers.columns if one.kind == "threshold"]
    banded = [one for one in numbers.columns if one.kind == "bands"]
    if hidden:
        why = "the answer says which groups qualify, and never how large they are"
        further = _write_further_numbers(numbers, hidden)
        yield f"not told: {_join_names(hidden)} {_choose_verb(hidden)} NULL, as {why}{further}."
    if proved:
        said = ", ".join(f"{one.name} is {one.words}" for one in proved)
        yield f"not counted: in every group {said}, within the tolerance. HAVING says so, and no group was counted."
    if banded:
        said = "; ".join(f"{one.name} {one.words}" for one in banded)
        edge = "the lower edge of its group's band, within the tolerance, and NULL below the first"
        yield f"bands: {said}. A number is {edge}. Bands are part of the price of the question."
    if numbers.unsorted_columns:
        order = (
            f"the order by {_join_names(numbers.unsorted_columns)} is not told, and rows come in the order of the keys"
        )
        yield f"not sorted: {order}. With LIMIT it is a ranking, which has a price."


def _write_further_numbers(numbers: NumberColumns, hidden: Sequence[str]) -> str:
    ways = []
    if numbers.setting == "null" and any(name in numbers.provable_columns for name in hidden):
        ways.append("SET keyhole.numbers = 'threshold' shows the bound that HAVING proves, for nothing")
    if numbers.setting != "bands" and any(name in numbers.banded_columns for name in hidden):
        ways.append("SET keyhole.numbers = 'bands' shows the owner's bands, at a price")
    return f". {'; '.join(ways)}" if ways else ""


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _choose_verb(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
