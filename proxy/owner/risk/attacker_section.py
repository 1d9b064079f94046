"""The section on attackers who know some groups' counts: how sure they become of each person's place."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.formula import Booleans, Integers, list_literals
from mechanisms.protocol import Noise
from mechanisms.risk.attack_confidence import Confidences, KeyTest, View, add_confidences, find_confidences
from mechanisms.risk.posterior import CONFIDENCES, bound_belief_in_place
from planner.parser.lexer import quote_identifier
from planner.question.question import Measure
from proxy.owner.risk.figures import write_loss, write_probability
from proxy.owner.risk.open_keys import Key, OpenKeys, Prior
from proxy.owner.risk.question_risks import RiskQuestion
from proxy.report.html.page import PageTable, Part
from proxy.report.html.plots import Axis, Curve, draw_line_plot
from proxy.report.section import ReportSection

OUTSIDER = "outsider"
_DAYS = 10  # made up, or of fresh noise over true counts: tables are means of them
MOST_WORK = 20_000_000  # places times people times times times attackers: minutes of work
_CLASSES = ("up to 10 %", "to 25 %", "to 50 %", "to 75 %", "to 90 %", "over 90 %")
_VIEWS = {
    View.PRIOR: "nothing: the prior alone",
    View.KEY_SET: "the key set, as returned",
    View.PATIENT_ANALYST: "the noisy counts behind it",
    View.EXACT_KEYS: "the key set without noise",
    View.EXACT_COUNTS: "the counts themselves",
}


class AttackTooLarge(ValueError):
    """The error for so many places and people that the attack cannot be computed in minutes."""


@dataclass(frozen=True, slots=True)
class AttackersInput:
    """The input of the section: one question, the prior of where people usually are, and the attackers.

    `counts` are the true counts, by key, for the owner alone. If None, the counts of each day are drawn from the prior.
    """

    question: RiskQuestion
    prior: Prior
    attackers: tuple[OpenKeys, ...]
    counts: Mapping[Key, int] | None = None

    def with_counts(self, counts: Mapping[Key, int]) -> "AttackersInput":
        """Return the same input with true counts, by key in the question's order of columns.

        Raises:
            ValueError: if the prior names a group outside the public domains.
        """
        own = self.question.plan.question.keys.names
        order = [own.index(name) for name in self.prior.names]
        true = {tuple(key[place] for place in order): count for key, count in counts.items()}
        strange = next((key for key in self.prior.people if key not in true), None)
        if strange is not None:
            one = next(iter(true), ())
            raise ValueError(
                f"the prior names {', '.join(strange)}, which is no public key: those are such as {', '.join(one)}"
            )
        times = set(self.prior.times)
        places = dict.fromkeys(key[0] for key in true if key[1:] in times)
        return replace(self, prior=self.prior.add_places(tuple(places)), counts=true)


def counts_people(question: RiskQuestion) -> bool:
    """Return True if a question only compares one count of each group with a constant.

    The count is of units, or of rows if one unit has one row.
    """
    asked = question.plan.question
    literals = list(list_literals(asked.formula))
    return (
        len(literals) == 1
        and literals[0].above
        and len(asked.functionals) == 1
        and asked.functionals[0].measure in (Measure.ROWS, Measure.UNITS)
        and asked.functionals[0].sensitivity == 1
        and asked.functionals[0].offsets is None
        and not asked.predicates
        and asked.ranked is None
        and asked.per_unit is None
        and len(asked.keys.columns) > 0
        and question.plan.calibration.tests[0].block == 1
        and question.plan.calibration.tests[0].table is None
    )


def find_attacked_question(
    questions: Sequence[RiskQuestion], prior: Prior, attackers: tuple[OpenKeys, ...]
) -> AttackersInput:
    """Return the section's input with the first question for which attacks can be computed.

    Such a question compares one count of people, grouped by exactly the prior's columns.

    Raises:
        ValueError: if there is no such question. The message is for the person who gave the prior.
    """
    for question in questions:
        if counts_people(question) and sorted(question.plan.question.keys.names) == sorted(prior.names):
            return AttackersInput(question, prior, attackers)
    columns = ", ".join(map(quote_identifier, prior.names))
    raise ValueError(
        f"give a question that compares one count of people with a number by {columns}: SELECT {columns} "
        f"FROM ... GROUP BY {columns} HAVING count(*) > 40. Use count(DISTINCT ...) if a unit has several rows"
    )


def write_attackers_section(
    asked: AttackersInput, *, seed: int, noise: Noise, most_work: int = MOST_WORK
) -> ReportSection:
    """Return the report's section on how sure each attacker becomes of each person's place.

    Parameters:
        most_work: the largest product of the numbers of places, people, times and attackers.

    Raises:
        AttackTooLarge: if the product is larger.
    """
    prior, plan = asked.prior, asked.question.plan
    (test,) = plan.calibration.tests
    (literal,) = list_literals(plan.question.formula)
    held = KeyTest(test, literal.cut)
    days = list(_list_days(asked, np.random.default_rng(seed)))
    _check_size(asked, days[0], most_work=most_work)
    parts: list[Part] = list(_introduce(asked, days[0]))
    figures: list[dict[str, object]] = []
    everybody = (OpenKeys(OUTSIDER, (), frozenset()), *asked.attackers)
    for attacker in everybody:
        opened = {time: np.array([attacker.knows((place, *time)) for place in prior.places]) for time in prior.times}
        found = {view: _attack(prior, days, opened, view=view, question=held, noise=noise) for view in View}
        known = sum(int(places.sum()) for places in opened.values())
        parts.append(_make_table(attacker, found, known))
        figures.append(_make_figures(attacker, found, known))
    parts += _explain(asked, test.epsilon)
    document = {
        "question": asked.question.name,
        "epsilon": test.epsilon,
        "private": asked.counts is not None,
        "days": len(days),
        "places": len(prior.places),
        "times": len(prior.times),
        "attackers": figures,
    }
    title = "What attackers become sure of" if asked.counts is None else "What attackers become sure of, in truth"
    return ReportSection("attackers" if asked.counts is None else "true_attackers", title, tuple(parts), document)


_Day = Mapping[Key, Integers]


def _list_days(asked: AttackersInput, chosen: np.random.Generator) -> Iterator[_Day]:
    """Yield the places' counts for each day: the true counts each time, or counts drawn from the prior."""
    prior = asked.prior
    for _ in range(_DAYS):
        if asked.counts is None:
            yield {time: _draw(_find_usual_counts(prior, time), chosen) for time in prior.times}
        else:
            yield {
                time: np.array([asked.counts.get((place, *time), 0) for place in prior.places], dtype=np.int64)
                for time in prior.times
            }


def _draw(usual: np.ndarray[tuple[int], np.dtype[np.float64]], chosen: np.random.Generator) -> Integers:
    return np.asarray(chosen.multinomial(max(1, round(float(usual.sum()))), usual / usual.sum()), dtype=np.int64)


def _find_usual_counts(prior: Prior, time: Key) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([prior.people.get((place, *time), _ABSENT) for place in prior.places])


_ABSENT = 1e-6  # people at a place that the file does not list at that time


def _check_size(asked: AttackersInput, day: _Day, *, most_work: int) -> None:
    places, attackers = len(asked.prior.places), 1 + len(asked.attackers)
    if sum(places * int(counts.sum()) for counts in day.values()) * attackers > most_work:
        raise AttackTooLarge(
            "these are more places, people and times than can be worked out: take fewer times or attackers"
        )


def _attack(
    prior: Prior, days: Sequence[_Day], opened: Mapping[Key, Booleans], *, view: View, question: KeyTest, noise: Noise
) -> Confidences:
    parts = [
        find_confidences(
            counts, _find_usual_counts(prior, time), opened[time], view=view, question=question, noise=noise
        )
        for day in days
        for time, counts in day.items()
    ]
    return add_confidences(parts, divisor=len(days))


def _introduce(asked: AttackersInput, day: _Day) -> Iterator[Part]:
    prior, question = asked.prior, asked.question
    accuracy = question.plan.question.accuracy
    many = "one time" if len(prior.times) == 1 else f"{len(prior.times):,} times"
    times = f" at {many} ({', '.join(prior.names[1:])})" if prior.names[1:] else ""
    people = sum(int(counts.sum()) for counts in day.values())
    yield (
        f"Held against {question.name}: {len(prior.places):,} places ({prior.names[0]}){times}, {people:,} people in "
        f"all. An answer is wrong with probability {accuracy.fnr:g} and {accuracy.fpr:g} at most, and everything below "
        "that has noise is calibrated to just this, so it is as useful as the answer."
    )
    yield (
        f"The counts are the true ones, {_DAYS} times with fresh noise."
        if asked.counts is not None
        else f"Nothing was read: the people are made up, {_DAYS} times, as the given prior says they are."
    )


def _make_table(attacker: OpenKeys, found: Mapping[View, Confidences], known: int) -> PageTable:
    hidden = found[View.PRIOR].people
    columns = ("shown is", *_CLASSES, "found better", "right, in the mean", "surest")
    rows = tuple(
        (
            words,
            *(f"{people:,.1f}" for people in found[view].people_by_class),
            f"{found[view].people_raised:,.1f}",
            write_probability(found[view].total_belief / hidden) if hidden else "",
            write_probability(found[view].highest_belief) if hidden else "",
        )
        for view, words in _VIEWS.items()
    )
    knows = "no count" if not known else f"{known:,} count{'' if known == 1 else 's'}"
    return PageTable(columns, rows, title=f"{attacker.name} knows {knows}; {hidden:,.1f} people elsewhere")


def _explain(asked: AttackersInput, epsilon: float) -> Iterator[Part]:
    yield (
        "For each class of confidence, a row has the number of people who really are at a place where the attacker "
        "believes them to be with that probability. Found better are those in a higher class than by the prior. The "
        "attacker knows how many people are elsewhere, and that each is at one place."
    )
    yield (
        "An analyst who asks one threshold after the other gets to the noisy counts behind the key set for the same "
        f"epsilon, {write_loss(epsilon)} of a presence. No belief in a place can come further than odds times "
        f"e^{write_loss(2 * epsilon)}, two presences: from 50 % to "
        f"{write_probability(bound_belief_in_place(epsilon, prior=0.5))}."
    )
    if asked.prior.names[1:]:
        yield "Each time is attacked by itself: whoever knows how people move from one to the next knows more."
    priors = tuple(step / 50 for step in range(51))
    curves = [
        Curve("before", priors, priors),
        Curve("after, at most", priors, tuple(bound_belief_in_place(epsilon, prior=prior) for prior in priors)),
    ]
    yield draw_line_plot(
        "What a belief in a place can become at most", curves, x=Axis("belief before", 0, 1), y=Axis("after", 0, 1)
    )


def _make_figures(attacker: OpenKeys, found: Mapping[View, Confidences], known: int) -> dict[str, object]:
    return {
        "name": attacker.name,
        "known_counts": known,
        "people": found[View.PRIOR].people,
        "classes": list(CONFIDENCES),
        "shown": [
            {
                "view": view.value,
                "people_by_class": list(one.people_by_class),
                "found_better": one.people_raised,
                "mean_belief": one.total_belief / one.people if one.people else None,
                "highest_belief": one.highest_belief if one.people else None,
            }
            for view, one in found.items()
        ],
    }
