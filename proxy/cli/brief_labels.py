"""Computed keys as PostgreSQL shows them, for commands. A shadow is started for them alone."""

from dataclasses import dataclass

from planner.catalog.key_space import KeySpace
from planner.scope.embedded import EmbeddedQuestion
from proxy.open_policy.service import Service
from proxy.process.generations import run_brief_shadow
from proxy.shadow.binaries import find_own_programs
from proxy.shadow.key_labels import KeyLabels, LabelReader


@dataclass(frozen=True, slots=True)
class ShortLivedLabels:
    """A reader of labels from a shadow that runs only while it reads."""

    service: Service

    def read_labels(self, question: EmbeddedQuestion, space: KeySpace, *, analyst: str) -> KeyLabels | None:
        """Return the labels of a question's keys; None if all are shown unchanged. Raise KH106 and KH406."""
        if question.shown_keys is None:
            return None
        catalog = self.service.catalog
        with run_brief_shadow(catalog, binaries=find_own_programs(self.service.policy)) as shadow:
            reader = LabelReader(lambda: (shadow, catalog.database))
            return reader.read_labels(question, space, analyst=analyst)
