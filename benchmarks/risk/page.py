"""Writes docs/results/risk.md."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.experiments.tables import markdown, percent, short
from benchmarks.risk.attacks import BEHIND, CUT, NEAR, TARGETS, TOLERANCE, TTL, Found
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
from benchmarks.risk.published_tables import LEAST_SELECTIVITY, QUERIES, UNSURE, USUAL, WITHIN, QueryRow, TableRow
from benchmarks.risk.reconstruction import CELLS, PEOPLE, BitsRow, HistogramRow


@dataclass(frozen=True, slots=True)
class Disclosures:
    """What was found of shares in groups."""

    origin: str
    published: Sequence[PublishedRow]
    keyhole: Sequence[KeyholeRow]
    least: Sequence[LeastSize]


@dataclass(frozen=True, slots=True)
class Places:
    """What was found of where people are."""

    runs: int
    people: int
    found: Sequence[Found]
    over_epsilon: Sequence[Found]


@dataclass(frozen=True, slots=True)
class Secrets:
    """What was put together from many answers."""

    runs: int
    bits: Sequence[BitsRow]
    histograms: Sequence[HistogramRow]


@dataclass(frozen=True, slots=True)
class Tables:
    """What was found of tables that are published whole: of the data, of groups too large as printed, and by method."""

    origin: str
    domains: Sequence[tuple[int, int]]
    violations: Sequence[tuple[float, float, float]]
    runs: int
    rows: Sequence[TableRow]
    queries: Sequence[QueryRow]


def document(disclosures: Disclosures, places: Places, secrets: Secrets, tables: Tables, *, seed: int) -> str:
    """The whole page."""
    told = (_tell_disclosures(disclosures), _tell_places(places), _tell_secrets(secrets), _tell_tables(tables))
    parts = [_open(seed), *(part for section in told for part in section)]
    return "\n\n".join(parts) + "\n"


def _open(seed: int) -> str:
    return f"""# Risk: what attackers learn

`make experiments` wrote this page and its images (seed {seed}). The published experiments on what noisy answers give
away are run again, and what Keyhole's answers give away stands beside them. How to read a loss:
[what the promises mean for people](../risk.md)."""


def _tell_disclosures(found: Disclosures) -> list[str]:
    return [
        f"""## Shares that can be read off noisy counts

Data: {found.origin}. Every pair of public columns makes groups. All groups, and how many of each have each value of a
sensitive column, are counted with Laplace noise of scale 24 over epsilon: one epsilon for all these counts together. A
share is *disclosed* if the ratio of its two noisy counts is within {percent(WIDTH)} of it with a probability of
{SURELY:g} or more, and the value is {JUMP:g} times as frequent in the group as everywhere. The numbers follow from the
exact law of the ratio ([proof](../proofs/disclosure.md)); nothing is drawn. **Where answers are precise enough to be of
use, disclosures are many**: they are what answers are for. They hold whether or not a person took part, and no promise
about presence prevents them.""",
        _tabulate_published(found.published),
        "![Disclosures over epsilon and over the error of answers](risk-disclosures.png)",
        f"""### From Keyhole

Keyhole returns keys and no counts. One threshold of a count says one truth of each group, and no share. But shares are
disclosed all the same. A patient analyst asks thresholds of two counts until their noisy values are pinned; reuse makes
that free after the first, so he has them at the rate that was paid. At the cap he puts all of a group's budget into the
counts of holders and of others; of each share by itself, not of all at once. And a question may say it outright: which
groups of more than {LEAST_ROWS:,} rows have a value {JUMP:g} times as often as everybody, asked of values that one in
twenty has. Rates {FNR:g} and {FPR:g}. Epsilon is what a row loses in one group, for one pair of columns. The last
column counts returned groups that fail.""",
        _tabulate_keyhole(found.keyhole),
        f"""### How large a group must be

For a share to be learned with a probability of {SURELY:g}: in multiples of the scale of Laplace noise; and in rows,
each of which loses epsilon, by the published pair of counts (the group and its holders, half of epsilon each) and by
the better pair (holders and others, all of it each).""",
        _tabulate_least(found.least),
    ]


def _tabulate_published(rows: Sequence[PublishedRow]) -> str:
    epsilons = list(dict.fromkeys(row.epsilon for row in rows))
    table = []
    for sensitive in dict.fromkeys(row.sensitive for row in rows):
        own = {row.epsilon: row for row in rows if row.sensitive == sensitive}
        table.append([f"disclosures of {sensitive}", *(str(own[epsilon].disclosed) for epsilon in epsilons)])
        table.append(["relative error of answers", *(percent(own[epsilon].error) for epsilon in epsilons)])
    return markdown(["epsilon", *(f"{epsilon:g}" for epsilon in epsilons)], table)


def _tabulate_keyhole(rows: Sequence[KeyholeRow]) -> str:
    table = [
        [
            row.sensitive,
            row.reading,
            short(row.epsilon),
            f"{row.disclosed:.0f}" if row.others is None else f"{row.disclosed:.1f} returned",
            "" if row.others is None else f"{row.others:.1f}",
        ]
        for row in rows
    ]
    return markdown(["sensitive", "how", "epsilon", "disclosures", "others returned"], table, texts=2)


def _tabulate_least(rows: Sequence[LeastSize]) -> str:
    epsilons = [epsilon for epsilon, *_ in rows[0].by_epsilon]
    table = [
        [
            percent(row.width),
            percent(row.share),
            f"{row.scales:.2f}",
            *(f"{published}, {better}" for _, published, better in row.by_epsilon),
        ]
        for row in rows
    ]
    return markdown(["to within", "share", "scales", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], table, texts=2)


def _tell_places(places: Places) -> list[str]:
    targets = " and ".join(f"{100 * target:g} %" for target in TARGETS)
    bars = [
        [bar.claim, bar.reached, "yes" if bar.met else "**no**"] for bar in judge(places.found, places.over_epsilon)
    ]
    return [
        f"""## Where somebody is

A building of 41 rooms, made up, is counted by the hour (`benchmarks/risk/building.py`); {places.people:,} person-hours
of one day are attacked. What is known before is the share of each room at that hour on all days before. An attacker
knows how many people are in the rooms that he cannot see: all rooms (external), those without lectures (student), or
without cameras (administrator). A person-hour is *found better* if the posterior of the room where the person really is
lies in a higher class (10, 25, 50, 75, 90 and 100 %) than the prior. Techniques are matched: their noise, or TTL's
period, is such that a heat map in ten colours is right to {targets}, to within {100 * NEAR:g} %. TTL hashes devices
with a salt that changes, without noise. PeGaSus is that of the monitors. Means of {places.runs} runs, seeds fixed.

Each cell: by the published attack, one room at a time; in brackets by the joint posterior of all rooms, which knows
that everybody is in one of them ([proof](../proofs/posterior.md)). It is the right one to believe, and mostly finds
more; where it finds fewer, single rooms seemed to say more than all of them do.""",
        _tabulate_places(places.found),
        "![People found better than before, over epsilon](risk-places.png)",
        f"""A question `count(*) > {CUT}` with a tolerance of {TOLERANCE} says one bit of each room and hour, and
that helps an attacker little. But whoever asks one threshold after the other gets to the noisy counts behind it, for
the same epsilon: the row *{BEHIND}* is what the loss allows, the row above it what one answer shows. Noisy counts
may find a few more than true ones: where those stop short of the end of a class, noise sometimes carries over it.

What was set beforehand:""",
        markdown(["claim", "found", "holds"], bars, texts=3),
    ]


def _tabulate_places(found: Sequence[Found]) -> str:
    attackers = list(dict.fromkeys(one.attacker for one in found))
    table = []
    for technique in dict.fromkeys(one.technique for one in found):
        own = {one.attacker: one for one in found if one.technique == technique}
        first = own[attackers[0]]
        setting = "" if first.setting is None else _name_setting(technique, first.setting)
        utility = "" if first.utility is None else percent(first.utility)
        cells = [f"{own[attacker].one_place:.0f} ({own[attacker].joint:.0f})" for attacker in attackers]
        table.append([technique, setting, utility, *cells])
    return markdown(["published", "setting", "utility", *attackers], table, texts=2)


def _name_setting(technique: str, setting: float) -> str:
    return f"{setting:.3g} minutes" if technique.startswith(TTL) else f"epsilon {setting:.3g}"


def _tell_secrets(secrets: Secrets) -> list[str]:
    bits = [
        [row.attack, "" if row.epsilon is None else f"{row.epsilon:g}", percent(row.right), percent(row.bound)]
        for row in secrets.bits
    ]
    histograms = [
        [
            f"{float(row.epsilon):g}",
            *(percent(part) for part in (row.by_threshold, row.small_by_threshold)),
            *(percent(part) for part in (row.by_noisy_counts, row.small_by_noisy_counts)),
        ]
        for row in secrets.histograms
    ]
    return [
        f"""## Secrets put together from many answers

Each of {PEOPLE} people has a secret bit, and the attacker counts those of random halves whose bit is one; the best
linear estimate puts the counts together. Means of {secrets.runs} runs. Noisy counts share epsilon evenly. The bound is
what no attack on one person exceeds within epsilon ([proof](../proofs/advantage.md)); a guess is right half the time.
**Many counts of many people find hardly more than a guess where the promise would allow much.** What reaches the bound
is one count of the victim alone: it needs a filter that nobody else meets, or everybody else's bits.""",
        markdown(["attack", "epsilon", "bits right", "bound"], bits, texts=1),
        f"""### A threshold test without a limit

What was published as the sparse vector technique compares exact values with one noisy threshold, as often as one likes,
and claims epsilon. It is not private: asked of the differences of all pairs of {CELLS:,} counts it says which are
equal, and half of epsilon then tells how large they are. Made-up counts with a long tail, a quarter of the runs: how
many are found to the unit, of all and of those of 5 or less, beside honest noise of the whole epsilon on every count.
Keyhole has a sparse vector with a limit, and the auditor's tests flag this one.""",
        markdown(["epsilon", "without a limit", "small counts", "noisy counts", "small counts"], histograms, texts=1),
    ]


def _tell_tables(tables: Tables) -> list[str]:
    domains = ", ".join(f"{before} values to {after}" for before, after in tables.domains)
    beyond = [[f"{retention:g}", percent(groups), percent(records)] for retention, groups, records in tables.violations]
    rows = [[row.method, row.protected, f"{row.error:.3g}", percent(row.told)] for row in tables.rows]
    return [
        f"""## Tables published whole

Data: {tables.origin}. Education, occupation, race and sex are public and generalised as published (chi-square with one
degree of freedom less than there are values: {domains}); who earns more than 50K is the sensitive column. A group is
too large as printed if a Chernoff bound on the error of its largest share is below {UNSURE:g} for an error of
{percent(WITHIN)}.""",
        markdown(["p", "groups too large", "records in them"], beyond, texts=1),
        f"""Each way to publish answers {QUERIES:,} random counts over one to three public columns and one value of the
sensitive one, of {percent(LEAST_SELECTIVITY)} of the records or more; means of {tables.runs} runs. The last column is
how many of the groups that are too large at p .5 give their largest share away to within {percent(WITHIN)}. **Thinning
costs accuracy and does not keep what it was for**: the criterion bounds a bound, not a probability. With exact tails it
is kept, and hardly anything is left to count. Noise on every cell protects what the others leave open, who is in the
table, and errs less than either does at p .5 from an epsilon of .2 on; that shares of large groups can be read off it
is what it is for.""",
        markdown(["method", "protects", "relative error", "large groups told"], rows, texts=2),
        f"""**A relative error depends on the queries as much as on the noise.** The noise on a count of so many cells
has one size, whatever the count; of few records it is a large part. The same tables, asked other queries, are below. A
first estimate, whose queries are not known in detail, was .053, .028, .0096 and .0048 for the noisy tables and .037 for
what was perturbed at p {USUAL:g}: about what queries of .5 % of the records or more find; at .1 % a noisy table errs
twice as much. The noise is the same in both: a relative error is only to be compared with one of the same queries.""",
        _tabulate_queries(tables.queries),
    ]


def _tabulate_queries(rows: Sequence[QueryRow]) -> str:
    epsilons = [epsilon for epsilon, _ in rows[0].noisy]
    table = [[row.queries, *(f"{error:.3g}" for _, error in row.noisy), f"{row.perturbed:.3g}"] for row in rows]
    names = [f"noisy table, epsilon {float(epsilon):g}" for epsilon in epsilons]
    return markdown(["queries", *names, f"perturbed, p {USUAL:g}"], table, texts=1)
