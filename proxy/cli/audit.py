"""The runner of `keyhole audit`, which audits every mechanism on every question, one audit on each core."""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from mechanisms.audit.auditor import AuditReport
from mechanisms.audit.subjects import PlannedAudit
from mechanisms.noise.exact import make_system_noise
from proxy.report.terminal import write_psql_table

_HEADINGS = ("mechanism, question", "claims epsilon", "proved at least", "verdict")


def run_audits(
    planned: Sequence[PlannedAudit], *, samples: int, processes: int, done: Callable[[str], None]
) -> list[AuditReport]:
    """Run the audits, and return the reports in the order of `planned`.

    Questions that a mechanism does not answer are left out.

    Parameters:
        processes: how many audits run at a time, each with the system's noise.
        done: called with an audit's subject when it has ended.
    """
    longest_first = sorted(planned, key=lambda audit: -audit.relative_duration)
    reports: dict[PlannedAudit, AuditReport | None] = {}
    if processes == 1:
        for audit in longest_first:
            reports[audit] = _run_audit(audit, samples)
            done(audit.subject)
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_ignore_interrupts) as pool:
            futures = {pool.submit(_run_audit, audit, samples): audit for audit in longest_first}
            try:
                for future in as_completed(futures):
                    reports[futures[future]] = future.result()
                    done(futures[future].subject)
            except BaseException:
                # otherwise the audits that are running would be waited for
                for child in multiprocessing.active_children():
                    child.terminate()
                raise
    return [report for audit in planned if (report := reports[audit]) is not None]


def _run_audit(audit: PlannedAudit, samples: int) -> AuditReport | None:
    return audit.run(samples=samples, noise=make_system_noise())


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def describe_reports(reports: Sequence[AuditReport]) -> tuple[str, ...]:
    """Return the findings as lines of text: a table and its explanation."""
    rows = [
        (report.subject, f"{report.claimed_epsilon:.3f}", f"{report.epsilon_lower:.3f}", _describe_verdict(report))
        for report in reports
    ]
    lines = [
        *write_psql_table(_HEADINGS, rows),
        "A claim that is not refuted is not thereby proved: the proofs are in docs/proofs.",
    ]
    if any(report.is_flagged for report in reports):
        lines.append("A claim is refuted: do not use that mechanism, and please report it as SECURITY.md says.")
    if not all(report.is_conclusive for report in reports):
        lines.append("Where nothing is proved, the draws were too few to refute anything: take more --samples.")
    return tuple(lines)


def _describe_verdict(report: AuditReport) -> str:
    if report.is_flagged:
        return "NOT PRIVATE"
    return "not refuted" if report.is_conclusive else "NOTHING PROVED"
