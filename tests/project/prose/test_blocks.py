"""Blocks are the prose of a file: without code, formulas, tables of symbols, examples and link targets."""

from tests.project.prose.blocks import docstring_blocks, markdown_blocks, plain
from tests.project.prose.source import source_blocks

PAGE = """\
# What it costs

A question
costs `1.5 + 2`, see [the ledger](law.md#dear).

| what | law |
|---|---|
| `x` | dear |

```sql
SELECT 'whoever';
```
- **Why.** Because.
- Second
  line.
<!-- anew -->
"""

MODULE = '''\
"""A module."""

_HINT = "Ask for " "less."


def run(epsilon: float) -> None:
    """Run it.

    Parameters:
        epsilon: the loss.
        keys, values: all of them.

    >>> run(1)
    whoever
    """
    if epsilon < 0:
        raise ValueError(f"a loss of {epsilon} is negative")
    option("--loss", help="The loss." if epsilon else "No loss.")
'''


def test_a_page_is_cut_into_paragraphs_items_headings_and_cells() -> None:
    blocks = [(block.line, block.text) for block in markdown_blocks(PAGE) if block.is_prose]
    assert blocks == [(3, "A question costs Code, see the ledger."), (13, "Because."), (14, "Second line.")]
    others = [block.text for block in markdown_blocks(PAGE) if not block.is_prose and block.text.strip("-")]
    assert others == ["What it costs", "what", "law", "Code", "dear", "Why."]


def test_marks_are_taken_off() -> None:
    assert plain("**bold** and *soft*, `a` and ``b`c``, $x^2$, a_b, 2 * 3") == (
        "bold and soft, Code and Code, Code, a_b, 2 * 3"
    )


def test_a_docstring_is_cut_at_its_entries_and_examples() -> None:
    assert [block.text for block in docstring_blocks("One.\n\n    a: b\n    c: d\n\n    x   y\n", line=5)] == [
        "One.",
        "a: b",
        "c: d",
    ]


def test_a_module_says_its_docstrings_errors_and_help() -> None:
    assert [(block.line, block.text) for block in source_blocks(MODULE)] == [
        (1, "A module."),
        (7, "Run it."),
        (9, "Parameters:"),
        (10, "epsilon: the loss."),
        (11, "keys, values: all of them."),
        (3, "Ask for less."),
        (17, "a loss of Code is negative"),
        (18, "The loss."),
        (18, "No loss."),
    ]
