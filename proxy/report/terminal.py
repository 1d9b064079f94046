"""Output for a terminal: tables as psql prints them, and formulas as trees. Control characters are made visible."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.explain.formula_tree import Branch

if TYPE_CHECKING:
    from rich.tree import Tree  # imported where a tree is drawn: most commands print lines


def write_psql_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table as psql prints it: a heading, a rule, one line per row."""
    printed = [[make_visible(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[index]) for row in printed) for index in range(len(columns))]
    heading, *body = (" " + " | ".join(map(str.ljust, row, widths)).rstrip() for row in printed)
    yield heading
    yield "-" + "-+-".join("-" * width for width in widths) + "-"
    yield from body


def write_row_count(number: int) -> str:
    """Return a number of rows in words: `1 row`, `2 rows`."""
    return f"{number:,} row{'' if number == 1 else 's'}"


def make_visible(text: str) -> str:
    """Return a text on one line, with control characters escaped so that a terminal does not act on them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def make_formula_trees(trees: Sequence[tuple[str, Branch]]) -> "tuple[Tree, ...]":
    """Return the trees of a formula for the rich library, each below its heading."""
    from rich.text import Text
    from rich.tree import Tree

    printed = []
    for heading, root in trees:
        tree = Tree(Text(heading))
        _grow(tree, root)
        printed.append(tree)
    return tuple(printed)


def _grow(tree: "Tree", branch: Branch) -> None:
    from rich.text import Text

    note = f"   {branch.note}" if branch.note else ""
    below = tree.add(Text(make_visible(f"{branch.text}{note}")))
    for child in branch.children:
        _grow(below, child)
