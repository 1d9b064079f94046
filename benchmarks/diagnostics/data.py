"""Scored tables: Adult with a logistic regression, or a stand-in of its shape; and the thesis's synthetic laws.

The file of Adult may not be there; `KEYHOLE_ADULT=file.parquet` names one with the columns as published. Without it
scores are drawn whose positives and negatives lie about as far apart: the logit of a positive is normal around .7, of a
negative around -2.4, each with a standard deviation of 1.7, and a quarter is positive.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

VARIABLE = "KEYHOLE_ADULT"
CELLS = 1024
_STAND_IN_ROWS = 30_162
_SATURATING = 12  # a power that leaves nearly all scores in the first of equal bins

Floats = npt.NDArray[np.float64]
Law = Literal["I", "H", "N"]
Model = Literal["M1", "M2"]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores between 0 and 1 with their outcomes, 0 or 1."""

    scores: Floats
    outcomes: npt.NDArray[np.int64]
    origin: str

    def sample(self, *, positives: int, negatives: int, generator: np.random.Generator) -> "Scored":
        """So many of each, without repetition."""
        chosen = [
            generator.choice(np.flatnonzero(self.outcomes == outcome), size=size, replace=False)
            for outcome, size in ((1, positives), (0, negatives))
        ]
        rows = np.concatenate(chosen)
        return Scored(self.scores[rows], self.outcomes[rows], self.origin)

    def saturate(self) -> "Scored":
        """Scores of the same order that crowd at zero, as those of a model that is far too sure."""
        return Scored(self.scores**_SATURATING, self.outcomes, self.origin)

    def count_cells(self, *, cells: int = CELLS) -> npt.NDArray[np.int64]:
        """Rows by cell and outcome, as a source would count them."""
        place = np.minimum((self.scores * cells).astype(np.int64), cells - 1)
        return np.bincount(2 * place + self.outcomes, minlength=2 * cells).reshape(cells, 2)


@lru_cache(maxsize=2)
def read_scored(*, seed: int) -> Scored:
    """Adult's complete rows and who earns more than 50,000, scored; or the stand-in."""
    path = os.environ.get(VARIABLE)
    return _draw_stand_in(seed) if path is None else _read_adult(path)


def fit_logistic(features: Floats, outcomes: Floats, *, steps: int = 12) -> Floats:
    """The weights of a logistic regression, by Newton's steps on a slightly penalised likelihood."""
    weights = np.zeros(features.shape[1])
    for _ in range(steps):
        told = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (outcomes - told) - 1e-3 * weights
        curve = (features * (told * (1 - told))[:, np.newaxis]).T @ features + 1e-3 * np.eye(len(weights))
        weights += np.linalg.solve(curve, slope)
    return np.asarray(weights, dtype=np.float64)


def draw_linear(law: Law, *, rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Predictions of the line that fits best, and residuals, for the thesis's laws I, H and N."""
    x = generator.uniform(1, 50, rows)
    sd = np.sqrt(x) if law == "H" else np.ones(rows)
    y = x + (0.01 * x**2 if law == "N" else 0.0) + generator.normal(0, sd, rows)
    slope, base = np.polyfit(x, y, 1)
    predicted = base + slope * x
    return predicted, y - predicted


def draw_logistic(model: Model, *, rows: int, generator: np.random.Generator) -> Scored:
    """The thesis's laws: a logit of 2x, or x**2 + 2x - 1, and in both cases a model of x alone."""
    x = generator.uniform(-1, 1, rows)
    logit = 2 * x if model == "M1" else x**2 + 2 * x - 1
    outcomes = (generator.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    features = np.stack([np.ones(rows), x], axis=1)
    weights = fit_logistic(features, outcomes.astype(np.float64))
    return Scored(1 / (1 + np.exp(-features @ weights)), outcomes, model)


def _draw_stand_in(seed: int) -> Scored:
    generator = np.random.default_rng(seed)
    outcomes = (generator.random(_STAND_IN_ROWS) < 0.25).astype(np.int64)
    logits = np.where(outcomes == 1, 0.7, -2.4) + generator.normal(0, 1.7, _STAND_IN_ROWS)
    return Scored(1 / (1 + np.exp(-logits)), outcomes, "a synthetic stand-in for Adult")


def _read_adult(path: str) -> Scored:
    import duckdb

    numbers = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    words = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
    columns = ", ".join([*numbers, *words, "income"])
    complete = "workclass <> '?' AND occupation <> '?' AND native_country <> '?'"
    with duckdb.connect() as connection:
        rows: dict[str, Any] = connection.execute(
            f"SELECT {columns} FROM read_parquet($1) WHERE {complete}", [path]
        ).fetchnumpy()
    parts = [np.ones(len(rows["age"]))]
    for name in numbers:
        values = np.log1p(rows[name]) if name.startswith("capital") else np.asarray(rows[name], dtype=np.float64)
        parts.append((values - values.mean()) / values.std())
    for name in words:
        texts = np.asarray(rows[name], dtype=str)
        parts += [(texts == value).astype(np.float64) for value in np.unique(texts)[1:]]
    features = np.stack(parts, axis=1)
    outcomes = np.char.startswith(np.asarray(rows["income"], dtype=str), ">").astype(np.int64)
    weights = fit_logistic(features, outcomes.astype(np.float64))
    return Scored(1 / (1 + np.exp(-features @ weights)), outcomes, "Adult (real; UCI, CC BY 4.0)")
