"""The schema of `keyhole risk --json`: what programs may rely on. `docs/risk-report.schema.json` is made of it."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0, le=1 + 1e-9)]
Epsilon = Annotated[float, Field(ge=0)]


class Strict(BaseModel):
    """Has the fields that it names and no others; numbers are numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Table(Strict):
    title: str
    columns: list[str]
    rows: list[list[str]]


class Section(Strict):
    title: str
    sentences: list[str]
    tables: list[Table]


class Presence(Strict):
    epsilon: Epsilon
    odds: float | None
    posteriors: dict[str, Probability]
    advantage: Probability
    true_positives_at_1_percent: Probability


class WhichGroup(Strict):
    epsilon: Epsilon
    odds: float | None
    guess_among: dict[str, Probability]


class Loss(Strict):
    epsilon: Epsilon
    presence: Presence
    which_group: WhichGroup


class TableLoss(Loss):
    table: str


class Promised(Strict):
    group: Loss
    unit: Loss | None


class Spent(Strict):
    tables: list[TableLoss]
    unit: Loss
    delta: float | None


class Said(Strict):
    comparison: str
    share: Probability
    above: bool
    columns: list[str]


class QuestionLoss(Strict):
    name: str
    epsilon: Epsilon
    unit_epsilon: Epsilon
    said_outright: list[Said]


class Adaptive(Strict):
    advantage: Probability


class FixedList(Strict):
    advantage: Probability
    true_positives_at_1_percent: Probability
    true_positives_at_10_percent: Probability


class Questions(Strict):
    questions: list[QuestionLoss]
    epsilon: Epsilon
    adaptive: Adaptive
    fixed_list_only: FixedList


class Least(Strict):
    within: float
    share: Probability
    least_group: int


class LeastOfValue(Strict):
    value: str
    base_rate: Probability
    jump: float
    least_group: int


class Learned(Strict):
    share: Probability
    chance: Probability


class Declared(Strict):
    question: str
    units_a_group: float
    learned: list[Learned]


class Groups(Strict):
    epsilon: Epsilon
    least: list[Least]
    surely: Probability | None = None
    sensitive: list[LeastOfValue] = []
    declared: list[Declared] = []


class Shown(Strict):
    view: Literal["nothing", "key set", "patient analyst", "exact key set", "exact counts"]
    people_by_class: Annotated[list[float], Field(min_length=6, max_length=6)]
    found_better: float
    mean_belief: Probability | None
    highest_belief: Probability | None


class Attacker(Strict):
    name: str
    known_counts: int
    people: float
    classes: list[Probability]
    shown: Annotated[list[Shown], Field(min_length=5, max_length=5)]


class Attackers(Strict):
    question: str
    epsilon: Epsilon
    private: bool
    days: int
    places: int
    times: int
    attackers: Annotated[list[Attacker], Field(min_length=1)]


class Attacks(Strict):
    epsilon: Epsilon
    bound: Probability | None = None
    single_out: Probability | None = None
    tracker: Probability | None = None
    random_counts: Probability | None = None
    exact_counts: Probability | None = None
    runs: float | None = None


class Target(Strict):
    epsilon: Epsilon
    which_epsilon: float | None


class TrueGroup(Strict):
    key: list[str]
    size: int
    holders: int
    jump: float
    chance: Probability
    disclosed: bool


class TrueShare(Strict):
    question: str
    share_of: str
    members: Literal["rows", "units"]
    base_rate: Probability | None
    disclosed: int
    groups: list[TrueGroup]


class TrueShares(Strict):
    shares: list[TrueShare]


class Cut(Strict):
    question: str
    units: int
    units_cut: int
    memberships_left_out: float
    rows_left_out: float
    totals_left_out: dict[str, float]


class Bounding(Strict):
    questions: list[Cut]


class Nothing(Strict):
    pass


class PromisedSection(Section):
    section: Literal["promised"]
    figures: Promised


class SpentSection(Section):
    section: Literal["spent"]
    figures: Spent


class QuestionsSection(Section):
    section: Literal["questions"]
    figures: Questions


class GroupsSection(Section):
    section: Literal["groups"]
    figures: Groups


class AttackersSection(Section):
    section: Literal["attackers", "true_attackers"]
    figures: Attackers


class AttacksSection(Section):
    section: Literal["attacks"]
    figures: Attacks


class TargetSection(Section):
    section: Literal["target"]
    figures: Target


class TrueSharesSection(Section):
    section: Literal["true_shares"]
    figures: TrueShares


class BoundingSection(Section):
    section: Literal["bounding"]
    figures: Bounding


class SilentSection(Section):
    section: Literal["silent"]
    figures: Nothing


AnySection = Annotated[
    PromisedSection
    | SpentSection
    | QuestionsSection
    | GroupsSection
    | AttackersSection
    | AttacksSection
    | TargetSection
    | TrueSharesSection
    | BoundingSection
    | SilentSection,
    Field(discriminator="section"),
]


class RiskDocument(Strict):
    owner_only: str | None = None
    sections: list[AnySection]
    from_: Annotated[Literal["caps", "ledger"], Field(alias="from")]


if __name__ == "__main__":
    page = Path(__file__).parents[4] / "docs" / "risk-report.schema.json"
    page.write_text(json.dumps(RiskDocument.model_json_schema(), indent=2) + "\n", encoding="utf-8")
