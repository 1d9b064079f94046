"""The policy file, `keyhole.toml`, from its text to a checked value.

`Policy.load` reads, checks and freezes it; every refusal names the line, the dotted key, the value and the fix.
What can be checked without the source is checked here (`planner.policy.rules`), the rest in `planner.policy.compile`.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Self, TypeVar

from pydantic import PrivateAttr, ValidationError

from planner.catalog.csv_file import CsvFile
from planner.catalog.fault import Fault
from planner.errors import KeyholeError
from planner.policy.refusals import PolicyText, find_blanks, refusal, refuse_together
from planner.policy.relation_names import relation
from planner.policy.rules.document import find_faults
from planner.policy.sections import PolicyDocument

Result = TypeVar("Result")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Policy(PolicyDocument):
    """A whole policy. `load` it; a value that exists has passed every check that needs no source."""

    _text: PolicyText = PrivateAttr(default_factory=PolicyText)

    @classmethod
    def load(cls, path: Path, *, environment: Mapping[str, str] = os.environ) -> Self:
        """The policy in the file at `path`. Raises KH001 to KH005 and KH010.

        `${VARIABLE}` in `url`, `token` and `password` is replaced from `environment`, nowhere else.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            hint = "Name an existing TOML file, or write a starter policy with keyhole init."
            raise KeyholeError("KH001", f"{path} cannot be read ({type(error).__name__})", hint=hint) from None
        return cls.parse(text, path=path, environment=environment)

    @classmethod
    def parse(cls, text: str, *, path: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """The policy that `text` says, as if it stood in the file at `path`. Raises KH001 to KH005 and KH010."""
        try:
            raw = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            hint = "Mend the TOML syntax there; strings need quotes, tables square brackets."
            raise KeyholeError("KH001", f"{path.name}: {error}", hint=hint) from None
        place = PolicyText.of(text, path=path, raw=raw)
        if blanks := tuple(find_blanks(raw)):
            raise refuse_together(blanks, place)
        try:
            policy = cls.model_validate(_expand_variables(raw, environment, place))
        except ValidationError as error:
            raise refusal(cls, error, place) from None
        policy._text = place
        if faults := tuple(find_faults(policy)):
            raise refuse_together(faults, place)
        return policy

    @property
    def path(self) -> Path:
        """The file that the policy came from."""
        return self._text.path

    @property
    def directory(self) -> Path:
        """The directory that relative paths in the policy start from, as it was when the policy was read."""
        return self._text.directory

    def relation(self, name: str, *, csv: CsvFile | None = None) -> str:
        """How the source names the data of one of the policy's tables; of a CSV file as it is pinned, if it is."""
        return relation(name, self.tables[name], directory=self.directory, kind=self.source.kind, csv=csv)

    def refuse(self, place: Sequence[str], fault: Fault) -> KeyholeError:
        """A fault at a dotted key of this policy, as the error to raise."""
        return self._text.refuse(tuple(place), fault)

    def at(self, place: Sequence[str], work: Callable[[], Result]) -> Result:
        """What `work` returns; a `Fault` it raises becomes an error at `place`."""
        try:
            return work()
        except Fault as fault:
            raise self.refuse(place, fault) from None


def _expand_variables(
    raw: Mapping[str, object], environment: Mapping[str, str], text: PolicyText
) -> Mapping[str, object]:
    """The file with `${VARIABLE}` replaced in `source.url`, `source.token`, `ledger.url` and every analyst's
    `password`."""

    def expand(section: object, key: str, place: tuple[str, ...]) -> object:
        if not isinstance(section, dict) or not isinstance(section.get(key), str):
            return section

        def variable(match: re.Match[str]) -> str:
            if match[1] in environment:
                return environment[match[1]]
            problem = f"the environment has no variable {match[1]}"
            raise text.refuse((*place, key), Fault("KH002", problem, hint=f"Set {match[1]} before starting Keyhole."))

        return {**section, key: _VARIABLE.sub(variable, section[key])}

    expanded = dict(raw)
    for name, key in (("source", "url"), ("source", "token"), ("ledger", "url")):
        if name in raw:
            expanded[name] = expand(expanded[name], key, (name,))
    analysts = raw.get("analysts")
    if isinstance(analysts, dict):
        expanded["analysts"] = {
            name: expand(section, "password", ("analysts", name)) for name, section in analysts.items()
        }
    return expanded
