"""The reports of `keyhole publish`: before anything is charged, and after a file was written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mechanisms.noise.discrete_laplace import compute_upper_tail
from mechanisms.publishing.uniform_perturbation import compute_attribute_epsilon
from proxy.cli.publish.place import WrittenFile
from proxy.release.publication import Publication, TableMethod
from proxy.release.unprotected import describe_disclosure
from proxy.report.terminal import write_row_count

_SURELY = 0.05  # how often noise is larger than what is said of it


def describe_offer(planned: Publication) -> Iterator[str]:
    """Yield lines about the publication's cost, or about what it reveals. Nothing has been read."""
    asked = planned.request
    cells = f"{planned.question.keys.size:,} combinations of {', '.join(one.name for one in planned.columns)}"
    if asked.epsilon is None:
        yield f"{asked.table} would be published over {cells}. No budget covers it. Nothing was read."
        yield describe_disclosure(planned)
        yield 'Add --yes --why "..." to publish it; the odometer will say so for ever.'
        return
    each, groups = float(asked.epsilon), planned.groups_of_one_unit
    yield f"{_describe_rows(planned)} would be published over {cells}."
    yield f"It costs each of them {each:g} epsilon, and a unit {groups * each:g}. Nothing was read or spent."
    yield describe_noise(planned)
    yield 'Add --yes --why "..." to pay and publish it.'


def _describe_rows(planned: Publication) -> str:
    """Return in words which rows are published."""
    asked = planned.request
    return f"{asked.table} where {asked.where}" if asked.where else asked.table


def make_offer_document(planned: Publication) -> dict[str, Any]:
    """Return the offer as a JSON document."""
    asked = planned.request
    found: dict[str, Any] = {
        "table": asked.table,
        "where": asked.where or None,
        "method": asked.method.value,
        "columns": [one.name for one in planned.columns],
        "cells": planned.question.keys.size,
    }
    if asked.epsilon is None:
        return found | {
            "differentially_private": False,
            "attribute_epsilon": compute_attribute_epsilon(retention=float(asked.retention), values=planned.shape[-1]),
            "statement": describe_disclosure(planned),
        }
    return found | {
        "differentially_private": True,
        "epsilon": float(asked.epsilon),
        "unit_epsilon": planned.groups_of_one_unit * float(asked.epsilon),
        "noise_95": find_largest_noise(planned),
        "statement": write_charged_statement(planned),
    }


def find_largest_noise(planned: Publication) -> int:
    """Return the size that the noise on a count does not exceed, 95 times in 100."""
    assert planned.request.epsilon is not None
    rate = float(planned.request.epsilon) / planned.request.most_rows
    low, high = 0, 1
    while 2 * compute_upper_tail(rate, high + 1) > _SURELY:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if 2 * compute_upper_tail(rate, middle + 1) > _SURELY else (low, middle)
    return high


def describe_noise(planned: Publication) -> str:
    """Return the facts about the noise for a reader of the file."""
    rows = planned.request.most_rows
    counted = "" if rows == 1 else f"; of each privacy unit at most {rows} rows count in one"
    told = f"Noise on a count is at most {find_largest_noise(planned):,}, 95 times in 100{counted}."
    if planned.request.method is TableMethod.ROWS:
        return f"{told} The rows are made up from the noisy counts: none is anybody's."
    return f"{told} Counts below zero are noise: sums need them, pictures do not."


def write_charged_statement(planned: Publication) -> str:
    """Return the statement about privacy for a charged file."""
    asked, groups = planned.request, planned.groups_of_one_unit
    assert asked.epsilon is not None
    each = float(asked.epsilon)
    return (
        f"Counts of {_describe_rows(planned)} over all public values, each with discrete Laplace noise. "
        f"Differentially private: epsilon {each:g} of each combination, {groups * each:g} of a privacy unit. "
        f"{describe_noise(planned)}"
    )


@dataclass(frozen=True, slots=True)
class PublishedReport:
    """The report of a publication and its file. `was_published_before` is True if it had been published before."""

    publication: Publication
    written_file: WrittenFile
    version: str
    was_published_before: bool

    @property
    def statement(self) -> str:
        """The statement about what the file reveals."""
        return (
            describe_disclosure(self.publication)
            if self.publication.request.epsilon is None
            else write_charged_statement(self.publication)
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines for a terminal. Text to paste into the policy comes last."""
        asked, rows = self.publication.request, self.written_file.rows
        written = "" if rows is None else f", {write_row_count(rows)}"
        if asked.epsilon is None:
            paid = "was published before" if self.was_published_before else "published; no budget covers it"
        else:
            each, unit = float(asked.epsilon), self.publication.groups_of_one_unit * float(asked.epsilon)
            paid = f"paid {each:g} epsilon a combination, {unit:g} a unit"
            paid = "released before, so it costs nothing" if self.was_published_before else paid
        yield f"{_describe_rows(self.publication)} as {self.written_file.place.file}{written}: {paid}."
        yield self.statement
        yield from self.written_file.lines()

    def make_document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        told = make_offer_document(self.publication) | {
            "paid_before": self.was_published_before,
            "version": self.version,
        }
        return told | self.written_file.make_document()
