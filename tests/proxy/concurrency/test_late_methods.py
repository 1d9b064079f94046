"""A frozen dataclass with late methods does what the standard library's does, and Keyhole's processes have them."""

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, InitVar, asdict, astuple, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import pytest

from proxy.concurrency.late_methods import decorate, is_suited
from tests.proxy.concurrency.test_interpreter import told

T = TypeVar("T")
Decorate = Callable[[type], Any]


def classes(made: Decorate) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Classes with all that fields can say, each with arguments for one value."""

    class Plain:
        """Has no default."""

        first: int
        second: tuple[float, ...]

    yield made(Plain), (1, (2.0, 3.0)), {}

    class Empty:
        """Has no field."""

    yield made(Empty), (), {}

    class Alone:
        """Has one field, and a constant."""

        only: float
        KIND: ClassVar[str] = "alone"

    yield made(Alone), (1.5,), {}

    class Defaults(Generic[T]):
        """Has defaults of all kinds, and makes one itself."""

        name: T
        items: list[str] = field(default_factory=lambda: ["a"])
        number: int = 7
        left: dict[str, int] = field(default_factory=dict, init=False)
        right: int = field(default=3, init=False)
        total: int = field(init=False)
        hidden: int = field(default=0, repr=False, compare=False)
        counted: list[int] = field(default_factory=list, hash=False)
        named: str = field(default="n", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.number + len(self.items))

    yield made(Defaults), ("x",), {"hidden": 5, "named": "m"}

    class Own:
        """Has methods of its own."""

        value: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 11

        def __eq__(self, other: object) -> bool:
            return other == 12

    yield made(Own), (1,), {}

    class OwnEquality:
        """Compares by itself, and is hashed by its field."""

        value: int

        def __eq__(self, other: object) -> bool:
            return other == 12

    yield made(OwnEquality), (1,), {}


def describe(cls: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Any]:
    """What can be seen of a class and of a value of it, step by step."""
    yield from (
        str(inspect.signature(cls)),
        cls.__match_args__,
        cls.__slots__,
        cls.__doc__,
        repr(cls.__dataclass_params__),
    )
    yield get_type_hints(cls.__init__, include_extras=True)
    yield cls.__init__.__qualname__
    value, again = cls(*arguments, **named), cls(*arguments, **named)
    yield from (repr(value), asdict(value), astuple(value), [(one.name, one.type) for one in fields(cls)])
    yield from (value == again, value != again, value == 12, value == object(), value.__eq__(arguments))
    if value == again:  # else the hash is the address
        yield attempt(lambda: hash(value))
    for made in (copy.copy(value), copy.deepcopy(value), replace(value)):
        yield from (type(made) is cls, repr(made), made == value)
    for name in cls.__slots__:
        yield attempt(partial(setattr, value, name, 1))
        yield attempt(partial(delattr, value, name))
    yield attempt(lambda: cls(*arguments, **named, unknown=1))
    yield attempt(lambda: cls(*arguments, 1, 2, 3, 4, 5, 6, 7, 8))
    yield attempt(lambda: vars(value))


def attempt(step: Callable[[], object]) -> object:
    try:
        return step()
    except (AttributeError, TypeError) as failed:
        return type(failed), str(failed)


def test_late_methods_do_what_those_of_the_standard_library_do() -> None:
    tried: tuple[dict[str, bool], ...] = ({}, {"eq": False}, {"kw_only": True})
    for options in tried:
        usual = classes(dataclass(frozen=True, slots=True, **options))
        late = classes(partial(decorate, eq=options.get("eq", True), kw_only=options.get("kw_only", False)))
        for (one, arguments, named), (other, *_) in zip(usual, late, strict=True):
            given, words = arguments, named
            if options.get("kw_only"):
                names = [each.name for each in fields(one) if each.init]
                given, words = (), {**dict(zip(names, arguments, strict=False)), **named}
            assert [*describe(other, given, words)] == [*describe(one, given, words)], (options, one.__doc__)
            # Python's own, of a class with slots, calls `super` of the class without them, and fails for that
            with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'unknown'$"):
                other(*given, **words).unknown = 1


def test_a_method_is_compiled_when_it_is_looked_up() -> None:
    made, *_ = next(classes(partial(decorate, eq=True, kw_only=False)))
    looks: dict[str, Callable[[], object]] = {
        "__init__": lambda: made(1, ()),
        "__eq__": lambda: made(1, ()) == made(2, ()),
        "__hash__": lambda: hash(made(1, ())),
    }
    for name, look in looks.items():
        assert not inspect.isfunction(vars(made)[name]), name
        look()
        assert inspect.isfunction(vars(made)[name]), name


def test_what_the_standard_library_does_in_another_way_is_left_to_it() -> None:
    class Documented:
        """Has a field."""

        value: int

    class Undocumented:
        value: int

    class Setting:
        """Sets by itself."""

        def __setattr__(self, name: str, value: object) -> None: ...

    class Initial:
        """Hands a value on."""

        value: InitVar[int]

    class Worded:
        """Has a type in words."""

        value: "int"

    Derived = type("Derived", (dataclass(Documented),), {"__doc__": "Has a base with fields."})
    usual = {"frozen": True, "slots": True}
    assert is_suited(Documented, usual | {"eq": False, "kw_only": True})
    assert not any(is_suited(one, usual) for one in (Undocumented, Setting, Initial, Worded, Derived))
    for others in ({}, {"frozen": True}, {"slots": True}, usual | {"order": True}, usual | {"frozen": False}):
        assert not is_suited(Documented, others)


STARTED = """
import sys
sys.argv = ["keyhole", "--version"]
import proxy.cli.script
def ended(status):
    from planner.errors import Entry
    print(type(vars(Entry)["__eq__"]).__name__)
proxy.cli.script.end_process = ended
proxy.cli.script.run()
"""
UNPICKLED = """
import pickle
from proxy.process.worker_start import NothingCollected
pickle.loads(pickle.dumps(NothingCollected()))
from planner.errors import Entry
print(type(vars(Entry)["__eq__"]).__name__)
"""


def test_the_command_and_its_workers_make_methods_late() -> None:
    assert told(STARTED)[1:] == ["_Late"] * 2
    assert told(UNPICKLED) == ["_Late"]
