"""A formula's trees in a terminal."""

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from planner.explain.formula_tree import Branch
from proxy.report.psql_table import visible


def formula_trees(trees: Sequence[tuple[str, Branch]]) -> tuple[Tree, ...]:
    """The trees for rich, each under its heading; texts are shown as they are, and obeyed nowhere."""
    printed = []
    for heading, root in trees:
        tree = Tree(Text(heading))
        _grown(tree, root)
        printed.append(tree)
    return tuple(printed)


def _grown(tree: Tree, branch: Branch) -> None:
    note = f"   {branch.note}" if branch.note else ""
    below = tree.add(Text(visible(f"{branch.text}{note}")))
    for child in branch.children:
        _grown(below, child)
