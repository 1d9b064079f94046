"""The public sections of `keyhole risk`. They follow from policy, ledger and questions, without private data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.noise.exact import make_system_noise
from mechanisms.risk.advantage import bound_advantage, bound_guess, bound_posterior
from mechanisms.risk.channels import compute_evidence_of_key
from mechanisms.risk.fixed_list import compose_fixed_losses
from mechanisms.risk.reconstruction import reconstruct_bits, single_out_victim, track_victim
from planner.functionals.said_shares import ShareThreshold
from planner.policy.file import Policy
from proxy.owner.risk.figures import PRESENCE, WHICH, RiskFigures, write_loss, write_probability
from proxy.owner.risk.groups import JUMP, DeclaredSizes, GroupsInput, write_groups_section
from proxy.owner.risk.question_risks import RiskQuestion
from proxy.owner.risk.sensitive import SensitiveValue
from proxy.owner.risk.targets import RiskTarget
from proxy.report.html.page import PageTable, Part, Verbatim
from proxy.report.html.plots import Axis, Curve, draw_line_plot
from proxy.report.odometer import OdometerReading
from proxy.report.section import ReportSection

_PEOPLE = 128  # secrets of an attack that is tried: as published
_STEPS = 50  # of a curve; a page shows no more
_EITHER = "this group rather than that"


@dataclass(frozen=True, slots=True)
class RiskInput:
    """The input of the whole risk report. If `spent` is given, sections are about the losses recorded in the ledger.

    `runs` is the number of simulated cells for attacks with random counts. `attackers` is the section on attackers who
    know some counts. `private` are sections from private data, on which no other section depends.
    """

    policy: Policy
    questions: tuple[RiskQuestion, ...]
    spent: OdometerReading | None
    target: RiskTarget | None
    runs: int
    sizes: DeclaredSizes
    sensitive: tuple[SensitiveValue, ...] = ()
    attackers: ReportSection | None = None
    private: tuple[ReportSection, ...] = ()

    @property
    def epsilon(self) -> float:
        """Return the largest spent loss of one group if `spent` is given, and otherwise the largest possible one."""
        if self.spent is None:
            return self.policy.budget.epsilon_per_predicate
        return max((table.epsilon for table in self.spent.tables), default=0.0)


def write_sections(asked: RiskInput) -> tuple[ReportSection, ...]:
    """Return all sections of the report, in order. Sections from private data come just before the last one."""
    found = [_write_promise_section(asked.policy)]
    if asked.spent is not None:
        found.append(_make_spent_section(asked.spent))
    if asked.questions:
        found.append(_write_questions_section(asked.questions, asked.sensitive))
    spent = asked.spent is not None
    held = GroupsInput(asked.policy, asked.questions, asked.epsilon, asked.sizes, asked.sensitive, is_spent=spent)
    found.append(write_groups_section(held))
    if asked.attackers is not None:
        found.append(asked.attackers)
    found.append(_write_attacks_section(asked))
    if asked.target is not None:
        found.append(_write_target_section(asked.target, asked.policy))
    return (*found, *asked.private, _write_omissions_section(asked))


def _write_promise_section(policy: Policy) -> ReportSection:
    budget = policy.budget
    cell, unit = RiskFigures(budget.epsilon_per_predicate), budget.epsilon_per_unit
    names = sorted({_name_unit(one.unit_columns) for one in policy.private_tables.values() if one.path is None})
    rows: list[tuple[str, ...]] = [cell.make_presence_row("a unit in one group")]
    which: list[tuple[str, ...]] = [cell.make_group_row(_EITHER)]
    parts: list[Part] = [
        f"Protected is one privacy unit ({'; '.join(names)}). The budget lets any one group lose epsilon "
        f"{write_loss(cell.epsilon)} in one budget window, grants not counted; these figures hold however "
        "questions are "
        "chosen and whatever else somebody knows.",
        f"Presence: whether a certain unit is in a certain group at all. Odds move by at most "
        f"e^{write_loss(cell.epsilon)}.",
    ]
    if unit is not None:
        whole = RiskFigures(unit)
        rows.append(whole.make_presence_row("a unit in the data at all"))
        which.append(whole.make_group_row("any value of a unit"))
    parts.append(PageTable(PRESENCE, tuple(rows)))
    parts.append(
        "The last two columns are about the best possible test. The first is the share of present units that it "
        "finds, minus the share of absent units that it accuses. The second is the share of present units that it "
        "finds at 1 % false alarms."
    )
    parts.append(
        "Which group: of a unit that is surely there, whether it is in this group rather than that. This is decided by "
        f"two presences, so twice the epsilon counts: {write_loss(2 * cell.epsilon)}. Do not read the first table "
        "as if it "
        "were about this."
    )
    parts.append(PageTable(WHICH, tuple(which)))
    if budget.delta is not None:
        parts.append(
            f"The epsilon of a whole unit holds except with a probability of {budget.delta:g} in each window, since "
            "the budget has a delta."
        )
    if budget.delta_per_cell is not None:
        parts.append(
            f"The epsilon of a group holds except with a probability of {budget.delta_per_cell:g} in each window, "
            "since the budget has a delta_per_cell."
        )
    priors = tuple(step / _STEPS for step in range(_STEPS + 1))
    curves = [
        Curve(name, priors, tuple(bound_posterior(times * cell.epsilon, prior=prior) for prior in priors))
        for name, times in (("nothing told", 0), ("presence", 1), ("which group", 2))
    ]
    parts.append(
        draw_line_plot("What a belief can become at most", curves, x=Axis("belief before", 0, 1), y=Axis("after", 0, 1))
    )
    figures = {"group": cell.make_document(), "unit": None if unit is None else RiskFigures(unit).make_document()}
    return ReportSection("promised", "What the caps promise", tuple(parts), figures)


def _name_unit(unit: tuple[str, ...]) -> str:
    return ", ".join(unit) if unit else "row"


def _make_spent_section(reading: OdometerReading) -> ReportSection:
    rows = [(f"{table.table}: {table.unit}", RiskFigures(table.epsilon)) for table in reading.tables]
    figures = {
        "tables": [{"table": table.table, **RiskFigures(table.epsilon).make_document()} for table in reading.tables],
        "unit": RiskFigures(reading.unit_epsilon).make_document(),
        "delta": reading.delta,
    }
    if not rows:
        return ReportSection("spent", "What was spent", ("Nothing was told about anybody yet.",), figures)
    if reading.unit_epsilon:
        rows.append(("a whole unit, over all tables", RiskFigures(reading.unit_epsilon)))
    parts: list[Part] = [
        f"{reading.questions:,} question(s) charged, in {reading.windows} budget window(s). What all answers together "
        "tell at most, of the group or unit that lost most: presence first, then which group.",
        PageTable(PRESENCE, tuple(one.make_presence_row(name) for name, one in rows)),
        PageTable(WHICH, tuple(one.make_group_row(name) for name, one in rows)),
    ]
    if reading.delta is not None:
        parts.append(f"The epsilon of a whole unit holds except with a probability of {reading.delta:g}.")
    of_groups = next((table.delta for table in reading.tables if table.delta is not None), None)
    if of_groups is not None:
        parts.append(f"The epsilon of a group holds except with a probability of {of_groups:g}.")
    return ReportSection("spent", "What was spent", tuple(parts), figures)


def _write_questions_section(questions: Sequence[RiskQuestion], sensitive: Sequence[SensitiveValue]) -> ReportSection:
    losses = [one.epsilon for one in questions]
    total, composed = sum(losses), compose_fixed_losses(losses)
    rows = tuple(
        (
            one.name,
            write_loss(one.epsilon),
            write_loss(one.unit_epsilon),
            write_probability(bound_advantage(one.epsilon)),
        )
        for one in questions
    )
    at = [composed.find_true_positive_rate(false_positive_rate=rate) for rate in (0.01, 0.1)]
    parts: list[Part] = [
        PageTable(("question", "epsilon a group", "epsilon a unit", "hits minus false alarms"), rows),
        f"All of them together cost a group epsilon {write_loss(total)} at most. For somebody who chooses each "
        "question in "
        "view of the answers before, the hits of the best test for presence exceed its "
        f"false alarms by at most {write_probability(bound_advantage(total))}.",
        "Only if this list was fixed beforehand, and nobody adds or leaves out a question in view of answers: at most "
        f"{write_probability(composed.largest_advantage)}; it finds {write_probability(at[0])} of those present at 1 % "
        f"false alarms, {write_probability(at[1])} at "
        "10 %. A dashboard that is always asked whole is such a list; an analyst at work never is.",
    ]
    said = [(one, found) for one in questions for found in one.shares]
    parts += [
        f"Said outright by {one.name}: {found.text}. Each group it returns tells that "
        f"{'more' if found.is_above else 'no more'} than {float(100 * found.share):g} % of the group are counted there"
        f"{' (' + ', '.join(found.columns) + ')' if found.columns else ''}. That is what it is for, and it is true of "
        f"the group whether or not any one person took part; is it meant to be known?{_weigh(one, found, sensitive)}"
        for one, found in said
    ]
    if not said:
        parts.append("None of them compares a share of a group with a number, so none says a share outright.")
    figures = {
        "questions": [
            {
                "name": one.name,
                "epsilon": one.epsilon,
                "unit_epsilon": one.unit_epsilon,
                "said_outright": _list_said_shares(one),
            }
            for one in questions
        ],
        "epsilon": total,
        "adaptive": {"advantage": bound_advantage(total)},
        "fixed_list_only": {
            "advantage": composed.largest_advantage,
            "true_positives_at_1_percent": at[0],
            "true_positives_at_10_percent": at[1],
        },
    }
    return ReportSection("questions", "The questions given", tuple(parts), figures)


def _weigh(question: RiskQuestion, said: ShareThreshold, sensitive: Sequence[SensitiveValue]) -> str:
    """Return in words what a share that a question compares means for a declared sensitive value."""
    known = next((one for one in sensitive if one.is_counted_by(said)), None)
    if known is None:
        return ""
    evidence = compute_evidence_of_key(question.plan.calibration.tests[said.functional])
    times = float(said.share) / known.base_rate
    told = (
        f"A disclosure by construction: that is {times:.3g} times the {100 * known.base_rate:g} % of everybody"
        if said.is_above and times >= JUMP
        else f"That is {times:.3g} times the {100 * known.base_rate:g} % of everybody, where {JUMP:g} times would be "
        "called a disclosure"
    )
    return f" {told}; and a returned group meets it with odds at least {evidence:.3g} times as high as before."


def _list_said_shares(question: RiskQuestion) -> list[dict[str, object]]:
    return [
        {"comparison": one.text, "share": float(one.share), "above": one.is_above, "columns": list(one.columns)}
        for one in question.shares
    ]


def _write_attacks_section(asked: RiskInput) -> ReportSection:
    title, epsilon = "Attacks that were tried, beside the bound", asked.epsilon
    if epsilon <= 0:
        return ReportSection("attacks", title, ("Nothing was told, so there is nothing to attack.",), {"epsilon": 0.0})
    bound, tracked = single_out_victim(epsilon), track_victim(epsilon)
    rows = [
        ("the promise: no attack on average more than", write_probability(bound.bound)),
        ("one count that nobody but the victim can be in", write_probability(bound.right_share)),
        ("a tracker: two counts that differ by the victim", write_probability(tracked.right_share)),
    ]
    figures = {
        "epsilon": epsilon,
        "bound": bound.bound,
        "single_out": bound.right_share,
        "tracker": tracked.right_share,
    }
    if asked.runs:
        noise = make_system_noise()
        many = reconstruct_bits(people=_PEOPLE, counts=_PEOPLE, epsilon=epsilon, runs=asked.runs, seed=1, noise=noise)
        rows.append(
            (
                f"{_PEOPLE} random counts against {_PEOPLE} secrets, {asked.runs} times",
                write_probability(many.right_share),
            )
        )
        exact = reconstruct_bits(people=_PEOPLE, counts=_PEOPLE, epsilon=None, runs=1, seed=1, noise=noise)
        rows.append(("the same with exact counts, for contrast", write_probability(exact.right_share)))
        figures |= {"random_counts": many.right_share, "exact_counts": exact.right_share, "runs": float(asked.runs)}
    parts: list[Part] = [
        f"Everybody has a secret bit, and attackers spend epsilon {write_loss(epsilon)} on counts of it; the data "
        "are made "
        "up. A coin would be right half the time.",
        PageTable(("attack", "bits right"), tuple(rows)),
        "The first attack reaches the bound: if filters can single a person out, or all others are known, the bound "
        "is the true risk. Attacks on many people at once do worse.",
    ]
    return ReportSection("attacks", title, tuple(parts), figures)


def _write_target_section(target: RiskTarget, policy: Policy) -> ReportSection:
    cell = [f"epsilon_per_predicate = {target.epsilon:g}    # of presence in one group"]
    if target.which_epsilon is not None:
        cell = [
            f"epsilon_per_predicate = {target.which_epsilon:g}    # also of which group",
            *([] if target.which_epsilon == target.epsilon else [f"# {target.epsilon:g} where presence alone matters"]),
        ]
    whole = policy.budget.epsilon_per_unit is not None
    least = target.epsilon if target.which_epsilon is None else target.which_epsilon
    unit = [f"epsilon_per_unit = {least:g}    # the same over all groups of a unit"] if whole else []
    parts: tuple[Part, ...] = (
        f"Wanted: {target.said}. Budgets that keep it in one budget window, for any analyst and any questions:",
        Verbatim("\n".join(["[budget]", *cell, *unit])),
    )
    figures = {"epsilon": target.epsilon, "which_epsilon": target.which_epsilon}
    return ReportSection("target", "Budgets for a wanted risk", parts, figures)


def _write_omissions_section(asked: RiskInput) -> ReportSection:
    return ReportSection("silent", "What this does not say", tuple(_list_omissions(asked)))


def _list_omissions(asked: RiskInput) -> Iterator[Part]:
    if asked.private:
        yield (
            "Private rows were read, only for the sections on true shares, bounding and true attackers. No other "
            "section, and no wanted risk, has a figure from them. The ledger has no entry, as nothing was released: "
            "do not hand this report on."
        )
    else:
        yield "No private row was read for this report. It says what anybody could learn at most, not what anybody did."
    if asked.spent is None:
        yield "The ledger was not read: --from ledger says what was spent so far."
    yield "Caps are of one budget window; every further window adds as much. Grants add what they say."
    yield (
        "People whose data go together, such as a family's, are protected each for themselves. Facts about groups, and "
        "what is known from elsewhere, are not protected."
    )
    among = bound_guess(asked.epsilon, candidates=10) if asked.epsilon else 0.1
    yield (
        f"Ten equally likely groups, one guess: right with {write_probability(among)} at most, where chance is "
        "right with 10 %."
    )
