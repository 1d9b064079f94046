"""The stored noise paths of questions: their newest states, and the refunds that depend on them.

The states of a path follow one another. Only one question at a time continues it, and only from its newest state,
because two refinements of one noisy value reveal more than the finer of them (docs/proofs/accounting.md, theorem 6).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from accountant.charges import Charge, PathState, Spent
from accountant.events.packed_losses import pack_losses, unpack_losses

PathKey = tuple[str, str]


@dataclass(slots=True)
class PathHead:
    """The newest state of one path: the reservation that committed it, and the one that continues it now.

    `committed_by` is the reservation that committed it, `continued_by` the one that continues it now. `drawn_by` is the
    reservation that drew its noise, as long as its refund counts. A path that was charged by Rényi curves can never be
    continued by another question. All of its noise was revealed at once, and the divergence of a refinement, given the
    revealed values, is not bounded by the difference of two curves.
    """

    table: str
    committed_by: str
    question_count: int
    drawn_by: str | None
    continued_by: str | None = None


@dataclass(slots=True)
class Refund:
    """The charge and cost of a question, kept while its refund may still end.

    The refund ends if the question's paths are continued. `path_count` is the number of these paths.
    `continuing_reservations` are the open reservations that continue some of them. The refund does not count while
    there are any.
    """

    charge: Charge
    packed_loss: Spent
    path_count: int
    continuing_reservations: set[str] = field(default_factory=set)

    @staticmethod
    def from_loss(charge: Charge, spent: Spent, *, heads: int) -> "Refund":
        """Return the refund of a question that has just stored noise paths."""
        if spent.keys is not None:
            spent = replace(spent, keys=pack_losses(spent.keys))
        return Refund(charge, spent, heads)

    @property
    def spent(self) -> Spent:
        """Return the cost of the question."""
        keys = self.packed_loss.keys
        return self.packed_loss if keys is None else replace(self.packed_loss, keys=unpack_losses(keys))


@dataclass(slots=True)
class NoisePaths:
    """Every path that can still be read or continued, by functional identity and data version."""

    heads: dict[PathKey, PathHead] = field(default_factory=dict)
    refunds: dict[str, Refund] = field(default_factory=dict)

    def copy(self) -> "NoisePaths":
        """Return a copy. Changes of the copy do not change these paths."""
        return NoisePaths(
            heads={key: replace(head) for key, head in self.heads.items()},
            refunds={
                origin: replace(refund, continuing_reservations=set(refund.continuing_reservations))
                for origin, refund in self.refunds.items()
            },
        )

    def are_free(self, states: Iterable[PathState]) -> bool:
        """Return True if each path is still in its given state, and no open reservation continues one of the paths."""
        heads = [self._find_path_head(state) for state in states]
        return all(head is not None and head.continued_by is None for head in heads)

    def reserve(self, states: Iterable[PathState], reservation: str) -> list[Refund]:
        """Mark the paths as continued by an open reservation. Return the refunds that stop counting because of that."""
        withdrawn = []
        for state in states:
            head = self.heads[state.identity, state.version]
            head.continued_by = reservation
            refund = self.refunds.get(head.drawn_by or "")
            if refund is not None:
                if not refund.continuing_reservations:
                    withdrawn.append(refund)
                refund.continuing_reservations.add(reservation)
        return withdrawn

    def find_withdrawn(self, states: Iterable[PathState]) -> list[Refund]:
        """Return the refunds that would stop counting if an open question continued the paths."""
        origins = {head.drawn_by or "" for state in states if (head := self._find_path_head(state)) is not None}
        return [
            refund
            for origin, refund in self.refunds.items()
            if origin in origins and not refund.continuing_reservations
        ]

    def release_paths(self, states: Iterable[PathState], reservation: str) -> list[Refund]:
        """Unmark the paths, since a reservation was released unused. Return the refunds that count again."""
        back = []
        for state in states:
            head = self._find_path_head(state)
            if head is not None:
                head.continued_by = None
                refund = self.refunds.get(head.drawn_by or "")
                if refund is not None and reservation in refund.continuing_reservations:
                    refund.continuing_reservations.discard(reservation)
                    if not refund.continuing_reservations:
                        back.append(refund)
        return back

    def remove_continued_paths(self, states: Iterable[PathState]) -> None:
        """Remove the paths in these states, which a question has continued.

        The refunds of the questions that drew their noise are withdrawn for good.
        """
        for state in states:
            head = self._find_path_head(state)
            if head is not None:
                self.refunds.pop(head.drawn_by or "", None)
                self._remove_path(state.identity, state.version)

    def record_paths(self, charge: Charge, reservation: str, spent: Spent, identities: Iterable[str]) -> None:
        """Record the paths that a question stored. `charge` is its reserved charge."""
        version = charge.family.version
        continued = () if charge.path_continuation is None else charge.path_continuation.paths
        counts = {
            state.identity: head.question_count
            for state in continued
            if (head := self._find_path_head(state)) is not None
        }
        self.remove_continued_paths(continued)
        origin = reservation if charge.path_continuation is None and not charge.is_by_curve else None
        identities = tuple(identities)
        for identity in identities:
            self._remove_path(identity, version)
            self.heads[identity, version] = PathHead(
                table=charge.family.table,
                committed_by=reservation,
                question_count=counts.get(identity, 0) + 1,
                drawn_by=origin,
                continued_by=reservation if charge.is_by_curve else None,
            )
        if identities and origin is not None:
            self.refunds[origin] = Refund.from_loss(charge, spent, heads=len(identities))

    def count_reading(self, states: Iterable[PathState]) -> None:
        """Count one more question that was answered from the values in these states."""
        for state in states:
            head = self._find_path_head(state)
            if head is not None:
                head.question_count += 1

    def remove_paths_of_version(self, table: str, version: str) -> None:
        """Remove a table's paths on one data version. Refunds that count at that moment count for good."""
        gone = [key for key, head in self.heads.items() if (head.table, key[1]) == (table, version)]
        for identity, of_version in gone:
            self._remove_path(identity, of_version)

    def _find_path_head(self, state: PathState) -> PathHead | None:
        head = self.heads.get((state.identity, state.version))
        return head if head is not None and head.committed_by == state.reservation else None

    def _remove_path(self, identity: str, version: str) -> None:
        head = self.heads.pop((identity, version), None)
        refund = None if head is None else self.refunds.get(head.drawn_by or "")
        if head is not None and refund is not None:
            refund.path_count -= 1
            if refund.path_count == 0:
                del self.refunds[head.drawn_by or ""]
