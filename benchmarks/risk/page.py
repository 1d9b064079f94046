"""Writes docs/results/risk.md."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.experiments.tables import format_percent, format_short, write_table
from benchmarks.risk.attacks import NEAR, TARGETS, TTL, Found
from benchmarks.risk.bars import judge
from benchmarks.risk.disclosures import (
    FNR,
    FPR,
    JUMP,
    LEAST_ROWS,
    SURELY,
    WIDTH,
    KeyholeRow,
    LeastSize,
    PublishedRow,
)
from benchmarks.risk.published_tables import LEAST_SELECTIVITY, QUERIES, UNSURE, WITHIN, QueryRow, TableRow
from benchmarks.risk.reconstruction import PEOPLE, BitsRow, HistogramRow

_BITS_AT = (1, 8, 64)
"""Epsilons of the table of attacks on bits."""


@dataclass(frozen=True, slots=True)
class Disclosures:
    """Findings on shares in groups."""

    origin: str
    published: Sequence[PublishedRow]
    keyhole: Sequence[KeyholeRow]
    least: Sequence[LeastSize]


@dataclass(frozen=True, slots=True)
class Places:
    """Findings on where people are."""

    runs: int
    people: int
    found: Sequence[Found]
    over_epsilon: Sequence[Found]


@dataclass(frozen=True, slots=True)
class Secrets:
    """Findings from many answers put together."""

    runs: int
    bits: Sequence[BitsRow]
    histograms: Sequence[HistogramRow]


@dataclass(frozen=True, slots=True)
class Tables:
    """Findings on tables published whole: the data, groups too large as printed, and results by method."""

    origin: str
    domains: Sequence[tuple[int, int]]
    violations: Sequence[tuple[float, float, float]]
    runs: int
    rows: Sequence[TableRow]
    queries: Sequence[QueryRow]


def write_page(disclosures: Disclosures, places: Places, secrets: Secrets, tables: Tables, *, seed: int) -> str:
    """Return the whole page."""
    sections = (
        *(_describe_disclosures(disclosures), _describe_places(places)),
        *(_describe_secrets(secrets), _describe_tables(tables)),
    )
    parts = [_open(seed), *(part for section in sections for part in section)]
    return "\n\n".join(parts) + "\n"


def _open(seed: int) -> str:
    return f"""# Risk: what attackers learn

`make experiments` wrote this page and its images (seed {seed}). How to read a loss: [risk.md](../risk.md)."""


def _describe_disclosures(found: Disclosures) -> list[str]:
    return [
        f"""## Shares that can be read off noisy counts

Data: {found.origin}. Every pair of public columns makes groups. The attack counts all groups, and in each the rows with
each sensitive value, with Laplace noise of scale 24 over epsilon. All counts share one epsilon. A share is
*disclosed* under two conditions:

- the ratio of its two noisy counts is within {format_percent(WIDTH)} of it with a probability of {SURELY:g} or more;
- the value is {JUMP:g} times as frequent in the group as everywhere.

**Where answers are precise enough to be of use, disclosures are many** ([proof](../proofs/disclosure.md)). They hold
whether or not a person took part.""",
        "![Disclosures over epsilon and over the error of answers](risk-disclosures.png)",
        f"""### From Keyhole

Keyhole returns keys and no counts. Two ways disclose shares all the same:

- An analyst asks thresholds of two counts until their noisy values are known. Reuse makes that free after the first
  question.
- A question asks which groups of more than {LEAST_ROWS:,} rows have a value {JUMP:g} times as often as everybody, for
  values that one row in twenty has.

Rates are {FNR:g} and {FPR:g}. Epsilon is the loss of a row in one group, for one pair of columns; the sensitive column
is {found.keyhole[0].sensitive}. The last column counts returned groups that fail.""",
        _tabulate_keyhole(found.keyhole),
    ]


def _tabulate_keyhole(rows: Sequence[KeyholeRow]) -> str:
    table = [
        [
            row.reading,
            format_short(row.epsilon),
            f"{row.disclosed:.0f}" if row.others is None else f"{row.disclosed:.1f} returned",
            "" if row.others is None else f"{row.others:.1f}",
        ]
        for row in rows
        if row.sensitive == rows[0].sensitive
    ]
    return write_table(["how", "epsilon", "disclosures", "others returned"], table, texts=1)


def _describe_places(places: Places) -> list[str]:
    targets = " and ".join(f"{100 * target:g} %" for target in TARGETS)
    bars = list(judge(places.found, places.over_epsilon))
    broken = [[bar.claim, bar.reached] for bar in bars if not bar.met]
    return [
        f"""## Where somebody is

A made-up building of 41 rooms is counted by the hour (`benchmarks/risk/building.py`). The attacks are on
{places.people:,} person-hours of one day. Attackers know the share of each room at that hour on all days before. They
also know the number of people in the rooms that they cannot see: all rooms (external), those without lectures
(student), or those without cameras (administrator). A person-hour is *found better* if the posterior of
the true room lies in a higher class (10, 25, 50, 75, 90 and 100 %) than the prior. The noise, or TTL's
period, is such that a heat map in ten colours is right to {targets}, to within {100 * NEAR:g} %. TTL hashes devices
with a salt that changes, without noise. Means of {places.runs} runs, seeds fixed.

Each cell has the published attack, one room at a time, and in brackets the right one, by the
[joint posterior](../proofs/posterior.md) of all rooms.""",
        _tabulate_places(places.found),
        "![People found better than before, over epsilon](risk-places.png)",
        f"Of {len(bars)} claims that were set beforehand (`benchmarks/risk/bars.py`), {len(bars) - len(broken)} hold.",
        *([write_table(["claim that does not hold", "found"], broken, texts=2)] if broken else []),
    ]


def _tabulate_places(found: Sequence[Found]) -> str:
    attackers = list(dict.fromkeys(one.attacker for one in found))
    table = []
    for technique in dict.fromkeys(one.technique for one in found):
        own = {one.attacker: one for one in found if one.technique == technique}
        first = own[attackers[0]]
        setting = "" if first.setting is None else _name_setting(technique, first.setting)
        utility = "" if first.utility is None else format_percent(first.utility)
        cells = [f"{own[attacker].one_place:.0f} ({own[attacker].joint:.0f})" for attacker in attackers]
        table.append([technique, setting, utility, *cells])
    return write_table(["published", "setting", "utility", *attackers], table, texts=2)


def _name_setting(technique: str, setting: float) -> str:
    return f"{setting:.3g} minutes" if technique.startswith(TTL) else f"epsilon {setting:.3g}"


def _describe_secrets(secrets: Secrets) -> list[str]:
    shown = [row for row in secrets.bits if row.epsilon is None or row.epsilon in _BITS_AT]
    bits = [
        [
            row.attack,
            "" if row.epsilon is None else f"{row.epsilon:g}",
            format_percent(row.right),
            format_percent(row.bound),
        ]
        for row in shown
    ]
    return [
        f"""## Secrets put together from many answers

Each of {PEOPLE} people has a secret bit. The attacker counts the 1 bits in random halves of the people, and combines
the counts by the best linear estimate. Means of {secrets.runs} runs. Noisy counts share epsilon evenly. The
[bound](../proofs/advantage.md) is for one person. **Many counts of many people find hardly more than a guess.**""",
        write_table(["attack", "epsilon", "bits right", "bound"], bits, texts=1),
    ]


def _describe_tables(tables: Tables) -> list[str]:
    domains = ", ".join(f"{before} values to {after}" for before, after in tables.domains)
    beyond = ", ".join(f"{format_percent(groups)} at p {retention:g}" for retention, groups, _ in tables.violations)
    rows = [
        [row.method, row.protected, f"{row.error:.3g}", format_percent(row.told)]
        for row in tables.rows
        if not row.method.endswith(("p 0.1", "p 0.9"))
    ]
    return [
        f"""## Tables published whole

Data: {tables.origin}. Education, occupation, race and sex are public. They are generalised as published, by a
chi-square test: {domains}. An income above 50K is the sensitive value. A group is too large as printed if
a Chernoff bound on the error of its largest share is below {UNSURE:g} for an error of {format_percent(WITHIN)}.

Groups that are too large: {beyond}.""",
        f"""Each way to publish answers {QUERIES:,} random counts over one to three public columns and one sensitive
value, of {format_percent(LEAST_SELECTIVITY)} of the records or more. Means of {tables.runs} runs. The last column is
the part of the groups too large at p .5 whose largest share is revealed to within {format_percent(WITHIN)}. **Thinning
costs accuracy and does not keep its promise.** Exact tails keep it. Shares of large groups can still be read off noisy
tables.""",
        write_table(["method", "protects", "relative error", "large groups revealed"], rows, texts=2),
    ]
