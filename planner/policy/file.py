"""The policy file, `keyhole.toml`, from its text to a checked value.

`Policy.load` reads, checks and freezes it. Every refusal names the line, the dotted key, the value and the fix. Rules
that need no source are checked here (`planner.policy.rules`), the rest in `planner.policy.compile`.
"""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Self, TypeVar

from pydantic import PrivateAttr, ValidationError

from planner.catalog.csv_file import CsvFile
from planner.catalog.fault import Fault
from planner.errors import KeyholeError
from planner.policy.policy_refusals import PolicyText, find_blanks, refuse_all_faults, refuse_invalid
from planner.policy.relation_names import write_relation
from planner.policy.rules.document import find_faults
from planner.policy.rules.texts import find_text_faults
from planner.policy.sections import PolicyDocument

Result = TypeVar("Result")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Policy(PolicyDocument):
    """A whole policy. `load` creates it, and every value has passed all checks that need no source."""

    _text: PolicyText = PrivateAttr(default_factory=PolicyText)

    @classmethod
    def load(cls, path: Path, *, environment: Mapping[str, str] = os.environ) -> Self:
        """Read the policy in the file at `path`. Raise KH001 to KH005 and KH010.

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
        """Parse a policy from `text`, as if the text came from the file at `path`. Raise KH001 to KH005 and KH010."""
        raw = _read_toml(text, path)
        place = PolicyText.from_toml(text, path=path, raw=raw)
        if blanks := tuple(find_blanks(raw)):
            raise refuse_all_faults(blanks, place)
        expanded = _expand_variables(raw, environment, place)
        if unsent := tuple(find_text_faults(expanded)):
            raise refuse_all_faults(unsent, place)
        try:
            policy = cls.model_validate(expanded)
        except ValidationError as error:
            raise refuse_invalid(cls, error, place) from None
        policy._text = place
        if faults := tuple(find_faults(policy)):
            raise refuse_all_faults(faults, place)
        return policy

    @property
    def path(self) -> Path:
        """The path of the policy's file."""
        return self._text.path

    @property
    def directory(self) -> Path:
        """The directory from which relative paths in the policy start. It is fixed when the policy is read."""
        return self._text.directory

    def write_relation(self, name: str, *, csv: CsvFile | None = None) -> str:
        """Return the SQL name of a table's data in the source.

        A CSV file is read in its pinned form if `csv` gives one.
        """
        return write_relation(name, self.tables[name], directory=self.directory, kind=self.source.kind, csv=csv)

    def drop_tables(self, tables: Collection[str]) -> Self | None:
        """Return the policy without some of its tables. Return None if other parts of it name them."""
        others = {name: one for name, one in self.tables.items() if name not in tables}
        rest = self.model_copy(update={"tables": others})
        return None if any(find_faults(rest)) else rest

    def refuse(self, place: Sequence[str], fault: Fault) -> KeyholeError:
        """Return the error for a fault at a dotted key of this policy."""
        return self._text.refuse(tuple(place), fault)

    def run_at(self, place: Sequence[str], work: Callable[[], Result]) -> Result:
        """Return the result of `work`.

        If `work` raises a `Fault`, raise an error at the dotted key `place` instead.
        """
        try:
            return work()
        except Fault as fault:
            raise self.refuse(place, fault) from None


def _read_toml(text: str, path: Path) -> dict[str, object]:
    """Parse a policy's text. Raise KH001, also for numbers and nesting beyond what Python reads."""
    hint = "Mend the TOML syntax there; strings need quotes, tables square brackets."
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise KeyholeError("KH001", f"{path.name}: {error}", hint=hint) from None
    except (ValueError, ArithmeticError):
        problem, hint = "a number has too many digits", "Write numbers of at most a few dozen digits."
    except RecursionError:
        problem, hint = "lists or tables are nested too deeply", "Write each section under a header of its own."
    raise KeyholeError("KH001", f"{path.name}: {problem}", hint=hint)


def _expand_variables(
    raw: Mapping[str, object], environment: Mapping[str, str], text: PolicyText
) -> Mapping[str, object]:
    """Return the file with `${VARIABLE}` replaced.

    It is allowed in `source.url`, `source.token`, `ledger.url` and every analyst's `password`.
    """

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
