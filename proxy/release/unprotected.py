"""Publications that no budget covers: uniform perturbation and SPS. Each is drawn only once for the same rows.

    event in the ledger? -> that file, or none;  else counts -> perturbation -> draft -> event -> the file's name

Guarantee: before a file has its final name, the ledger has a lasting event with its maker, reason and disclosure. A
draw depends on the rows of one data version, and two draws could be averaged. So the same publication of a version is
made once. If a process dies after the event, its draft remains, and the next call renames it.

References: docs/proofs/published_tables.md; docs/decisions/0030-published-tables.md.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import prod
from pathlib import Path

from accountant.charges import is_lasting
from accountant.events.owner_events import Published
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.generalisation import merge_counts, merge_values
from mechanisms.publishing.reconstruction_privacy import find_least_chance
from mechanisms.publishing.sampled_perturbation import sample_and_perturb
from mechanisms.publishing.uniform_perturbation import perturb_uniformly
from planner.catalog.catalog import RELEASED_BY, SqlType
from planner.catalog.key_space import format_value
from proxy.open_policy.service import Service
from proxy.release.charged import LONGEST_MS, Accounts, Release, check_version, refuse_ledger_errors
from proxy.release.publication import Publication, TableMethod
from proxy.release.published_file import (
    PublishedColumn,
    PublishedTable,
    hash_file,
    list_columns,
    lock_folder,
    make_draft_path,
    read_column_names,
    rename_draft,
    write_draft,
)
from proxy.release.release_refusals import refuse_live_table, refuse_second_draw

JOINS = " | "  # between values that a generalised column no longer tells apart


@dataclass(frozen=True, slots=True)
class UnprotectedFile:
    """The published file: its SHA-256, columns with types, number of rows, and data version.

    If `is_repeated`, an earlier command made the file: the same one, one that crashed, or one with the columns in
    another order.
    """

    file_hash: str
    types: tuple[tuple[str, str], ...]
    rows: int | None
    version: str
    is_repeated: bool


def describe_disclosure(planned: Publication) -> str:
    """Return what the file discloses, as text for the file, the ledger and the odometer.

    The text follows from public numbers.
    """
    asked, values = planned.request, planned.shape[-1]
    kept, changed = asked.retention, (1 - asked.retention) * (values - 1) / values
    factor = 1 + kept * values / (1 - kept)
    sampled = asked.method is TableMethod.SPS
    told = [
        f"These rows show {'to a few rows' if sampled else 'exactly'} who (by their public columns"
        f"{', generalised' * sampled}) is in {asked.table}.",
        f"Of the sensitive column each record was changed with probability {_shorten(changed)}; one record's own value "
        f"changes the probability of its published value by at most a factor {_shorten(factor)}, and those of "
        "several records of one person multiply.",
    ]
    if sampled and asked.exact:
        told.append(
            f"Large groups were thinned so that an estimate of a group's largest share is off by more than "
            f"{_write_percent(asked.within)}, to either side, with probability {_shorten(asked.unsure)} at least."
        )
    elif sampled:
        told.append(
            f"Large groups were thinned so that a Chernoff bound on the error of an estimate is at least "
            f"{_shorten(asked.unsure)}; the error itself is smaller: in the largest groups an estimate is within "
            f"{_write_percent(asked.within)} with probability {find_least_chance(asked.make_criterion(values)):.3f} "
            "or more."
        )
    if sampled:
        told.append("The thinning depends on the data and can tell a group's largest share.")
    return " ".join([*told, "Keyhole's budgets do not cover this file."])


def find_publication(service: Accounts, planned: Publication) -> Published | None:
    """Return the ledger's event of the same publication on the current data version, or None. Raise KH317 and KH502."""
    version = _find_lasting_version(service, planned)
    with refuse_ledger_errors():
        return next(iter(service.ledger.owner.find_publications(_identify(planned, version))), None)


def publish_unprotected(service: Service, planned: Publication, path: Path, *, by: str) -> UnprotectedFile:
    """Perturb the rows, write an event to the ledger, and then write the file.

    If an earlier call made the file, return that file.

    Parameters:
        path: the file to write. Its folder is made.
        by: the name of the person who decides.

    Raises:
        KeyholeError: KH317 if the same table was published under another path; KH501; KH502. Nothing is published then.
        FileExistsError: if another file has its name.
        OSError: if it cannot be written.
    """
    version = _find_lasting_version(service, planned)
    publication = _identify(planned, version)
    with lock_folder(path.parent):
        with refuse_ledger_errors():
            before = service.ledger.owner.find_publications(publication)
        if before:
            return _finish(before[0], planned, path)
        if hash_file(path) is not None or path.is_symlink():
            raise FileExistsError(path)
        table = _perturb(service, planned, version)
        statement = describe_disclosure(planned)
        file_hash = write_draft(table, path, statement)
        with refuse_ledger_errors():
            written = service.ledger.owner.record_publication(
                publication,
                table=planned.request.table,
                version=version,
                method=planned.request.method.value,
                file=path.name,
                file_hash=file_hash,
                statement=statement,
                by=by,
                why=planned.request.why,
            )
            if not written:  # by another folder's process
                make_draft_path(path).unlink()
                (first,) = service.ledger.owner.find_publications(publication)
                raise refuse_second_draw(first.file, first.file_hash)
        rename_draft(path, statement)
    return UnprotectedFile(file_hash, table.types, table.rows, version, is_repeated=False)


def perturb_counts(planned: Publication, counts: Integers, *, noise: Noise) -> PublishedTable:
    """Perturb exact counts of cells, and return the published rows. All noise is drawn here."""
    asked, shape, places = planned.request, planned.shape, planned.places
    columns = list(list_columns(planned.question.keys))
    if asked.method is TableMethod.PERTURBED:
        drawn = perturb_uniformly(counts.reshape(-1, shape[-1]), retention=asked.retention, noise=noise)
        return PublishedTable(planned.columns, drawn.reshape(shape).transpose(places), None)
    merged = merge_values(counts)
    columns[:-1] = [_generalise(one, numbers) for one, numbers in zip(columns[:-1], merged, strict=True)]
    joined = merge_counts(counts, merged)
    groups = joined.reshape(prod(joined.shape[:-1]), shape[-1])
    found = sample_and_perturb(groups, asked.make_criterion(shape[-1]), noise=noise)
    told = tuple(columns[place] for place in places)
    return PublishedTable(told, found.published_counts.reshape(joined.shape).transpose(places), None)


def _generalise(column: PublishedColumn, numbers: tuple[int, ...]) -> PublishedColumn:
    """Return a column with merged values, each named by all values in it. Return it unchanged if none is merged."""
    if max(numbers) + 1 == len(numbers):
        return column
    names: list[list[str]] = [[] for _ in range(max(numbers) + 1)]
    for value, number in zip(column.values, numbers, strict=True):
        names[number].append(format_value(value))
    return PublishedColumn(column.name, SqlType.TEXT, tuple(JOINS.join(one) for one in names))


def _perturb(service: Service, planned: Publication, version: str) -> PublishedTable:
    counts = planned.counts
    release = Release(counts, "", Fraction(0), "", "")
    with ExitStack() as working:
        working.enter_context(service.hold_open())
        working.enter_context(service.take_turn(analyst=RELEASED_BY, timeout_ms=LONGEST_MS))
        found = service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=LONGEST_MS)
        check_version(service, release, version, is_paid=False)
        return perturb_counts(planned, planned.read_counts(found), noise=service.noise)


def _finish(event: Published, planned: Publication, path: Path) -> UnprotectedFile:
    """Return the file of an event. If only its draft exists, rename the draft. Raise KH317 if there is neither."""
    if path.name != event.file:
        raise refuse_second_draw(event.file, event.file_hash)
    if hash_file(path) != event.file_hash:
        if hash_file(make_draft_path(path)) != event.file_hash:
            raise refuse_second_draw(event.file, event.file_hash)
        rename_draft(path, event.statement)
    make_draft_path(path).unlink(missing_ok=True)  # of a process that died when the file had its name
    return UnprotectedFile(event.file_hash, _list_types(planned, path), None, event.version, is_repeated=True)


def _list_types(planned: Publication, path: Path) -> tuple[tuple[str, str], ...]:
    """Return the columns of an earlier file, in the file's order. A column with merged values is text."""
    types = {column.name: column.type_name for column in planned.columns}
    if planned.request.method is TableMethod.SPS:
        types |= dict.fromkeys(planned.request.public, "text")
    return tuple((name, types[name]) for name in read_column_names(path))


def _find_lasting_version(service: Accounts, planned: Publication) -> str:
    version = service.find_version(planned.counts.table)
    if not is_lasting(version):
        raise refuse_live_table(planned.request.table)
    return version


def _identify(planned: Publication, version: str) -> str:
    """Return a digest of the statement, the method, the method's parameters and the data version."""
    asked = planned.request
    terms = f"{asked.method} {asked.retention}"
    if asked.method is TableMethod.SPS:
        terms += f" {asked.within} {asked.unsure} {asked.exact}"
    return sha256(f"published:{terms}:{version}:{planned.counts.sql}".encode()).hexdigest()


def _shorten(number: Fraction) -> str:
    return f"{float(number):.4g}"


def _write_percent(share: Fraction) -> str:
    return f"{float(100 * share):g} %"
