"""The rules, by pairs: a sentence that breaks one, and the same said well."""

import pytest

from tests.project.prose.blocks import Block
from tests.project.prose.rules import check, sentences

LONG = " ".join(["word"] * 31) + "."
ALLOWED = " ".join(["Word"] * 30) + "."

PAIRS = [
    ("words in a sentence", LONG, ALLOWED),
    ("words in a sentence", f"Short. {LONG}", f"{ALLOWED} {ALLOWED}"),
    ('begins with "What"', "What a question costs is reserved.", "The ledger reserves the price of a question."),
    ('begins with "What"', "It runs. What it costs stays spent.", "It runs. Its price stays spent."),
    ('begins with "What"', "What it costs is 1.", "What does it cost?"),
    ('begins with "Whether"', "Whether it waits.", "Return True if it waits."),
    ('begins with "Whether"', "(Whether it waits is public.)", "(Everybody knows if it waits.)"),
    ('begins with "Whoever"', "Whoever asks twice is charged once.", "A question that is asked twice is charged once."),
    ('say "who"', "It is charged to whoever asks.", "It is charged to the analyst who asks."),
    ("but for", "All rows but for the last count.", "All rows except the last count."),
    ("so that", "It waits so that one runs, so that none is lost.", "It waits so that one runs. So none is lost."),
    ("not ... but", "It reads not the rows but the keys.", "It reads the keys and no rows."),
    ("not ... but", "It is not hidden by `a` but by `b`.", "It is not hidden by `a`, but `b` hides it."),
    ('say "expensive"', "A dear question waits.", "An expensive question waits."),
    ('say "more expensive"', "The dearer one waits.", "The more expensive one waits."),
    ('say "most expensive"', "The dearest one waits.", "The most expensive one waits."),
    ('say "predict"', "Scores foretell outcomes.", "Scores predict outcomes."),
    ('say "predicted"', "No score foretold it.", "No score predicted it."),
    ('say "again"', "It is drawn anew.", "It is drawn again."),
    ('say "distribution"', "The answer has the same law.", "The answer has the same distribution."),
    ('say "distribution"', "The laws of both differ.", "By law, both agree, as the law requires."),
]


def rules_broken(text: str, *, is_page: bool = True, is_prose: bool = True) -> list[str]:
    return [finding.rule for finding in check(Block(1, text, is_prose=is_prose), is_page=is_page)]


@pytest.mark.parametrize(("rule", "bad", "good"), PAIRS)
def test_a_rule_finds_the_bad_sentence_and_not_the_good_one(rule: str, bad: str, good: str) -> None:
    assert any(rule in found for found in rules_broken(bad))
    assert rules_broken(good) == []


def test_headings_and_cells_are_held_to_words_and_not_to_sentences() -> None:
    assert rules_broken("What it costs", is_prose=False) == []
    assert rules_broken(LONG, is_prose=False) == []
    assert rules_broken("A dear question", is_prose=False) == ['say "expensive"']


def test_law_is_looked_for_in_pages_alone() -> None:
    assert rules_broken("The answer has the same law.", is_page=False) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It takes 1.5 s. Then 2.", ["It takes 1.5 s.", "Then 2."]),
        ("See e.g. Table 2 of Kellaris et al. 2014. Done", ["See e.g. Table 2 of Kellaris et al. 2014.", "Done"]),
        ('It says "no." Then it ends (at once.) Good.', ['It says "no."', "Then it ends (at once.)", "Good."]),
    ],
)
def test_a_text_is_cut_where_sentences_end(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected
