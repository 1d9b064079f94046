"""Frozen dataclasses whose methods are compiled when they are first looked up.

`dataclasses.dataclass` compiles six methods of each class while its module is imported. That was more than a fifth of
the processor time of `keyhole explain`, which makes values of a third of the classes that it imports and compares few.
What the methods do is what those of Python 3.11 and 3.12 do.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, InitVar
from reprlib import recursive_repr
from typing import Any

_PACKAGES = frozenset(("accountant", "mechanisms", "planner", "proxy"))
_KNOWN = frozenset(("frozen", "slots", "eq", "kw_only"))  # options; a class with any other is made as usual
_USUAL = dataclasses.dataclass
_SELF = "__dataclass_self__"  # names that no field has, as the standard library has them


def make_methods_late() -> None:
    """Have the frozen dataclasses of Keyhole that are imported from now on get their methods late.

    Replaces `dataclasses.dataclass` in this process. It makes other packages' classes as usual.
    """
    dataclasses.dataclass = _choose


def _choose(cls: Any = None, /, **options: Any) -> Any:
    """Decorate one of Keyhole's frozen classes here, and any other as usual."""
    if cls is None:
        return lambda found: _choose(found, **options)
    if cls.__module__.partition(".")[0] in _PACKAGES and is_suited(cls, options):
        return decorate(cls, eq=options.get("eq", True), kw_only=options.get("kw_only", False))
    return _USUAL(cls, **options)


def is_suited(cls: type, options: Mapping[str, Any]) -> bool:
    """Return True if `decorate` makes of a class what `dataclass` with these options would make of it."""
    own = vars(cls)
    return bool(
        options.get("frozen")
        and options.get("slots")
        and options.keys() <= _KNOWN
        and own.get("__doc__")  # else it would be the signature
        and not any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__)
        and not own.keys() & {"__setattr__", "__delattr__"}  # an error, for which `dataclass` has the words
        and not any(isinstance(kind, (str, InitVar)) for kind in own.get("__annotations__", {}).values())
    )


def decorate(cls: type, *, eq: bool, kw_only: bool) -> type:
    """Return `dataclass(frozen=True, slots=True, eq=eq, kw_only=kw_only)(cls)` for a suited class, its methods late."""
    own = dict(vars(cls))
    made: Any = _USUAL(cls, init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
    options = made.__dataclass_params__
    options.init = options.repr = options.frozen = True
    options.eq = eq
    late: dict[str, Callable[[Any], Any]] = {"__init__": _compile_init, **({"__eq__": _compile_eq} if eq else {})}
    methods: dict[str, Any] = {
        "__repr__": _represent,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
        **{name: _Late(made, name, write) for name, write in late.items()},
    }
    for name in methods.keys() - own.keys():
        setattr(made, name, methods[name])
    # Python itself makes it None for a class that has an `__eq__` of its own
    if eq and ("__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)):
        made.__hash__ = _Late(made, "__hash__", _compile_hash)
    return made  # type: ignore[no-any-return]


class _Late:
    """A method that is compiled, and put into its class in place of this, when it is looked up."""

    __slots__ = ("_cls", "_compile", "_name")

    def __init__(self, cls: Any, name: str, compile_it: Callable[[Any], Any]) -> None:
        self._cls, self._name, self._compile = cls, name, compile_it

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        real = self._compile(self._cls)
        setattr(self._cls, self._name, real)
        return real.__get__(instance, owner)


def _compile_init(cls: Any) -> Any:
    known: dict[str, Any] = {"__dataclass_set__": object.__setattr__, "__dataclass_factory__": _FACTORY}
    positional, body = [_SELF], []
    named: list[str] = []
    fields = dataclasses.fields(cls)
    for field in fields:
        name, usual = field.name, f"__dataclass_default_{field.name}__"
        parameter = value = name
        if field.default_factory is not MISSING:
            known[usual] = field.default_factory
            parameter = f"{name}=__dataclass_factory__"
            value = f"{usual}() if {name} is __dataclass_factory__ else {name}" if field.init else f"{usual}()"
        elif field.default is not MISSING:
            known[usual] = field.default
            parameter = f"{name}={usual}"
            value = name if field.init else usual
        elif not field.init:
            continue  # `__post_init__` sets it
        body.append(f"__dataclass_set__({_SELF},{name!r},{value})")
        if field.init:
            (named if field.kw_only else positional).append(parameter)
    if hasattr(cls, "__post_init__"):
        body.append(f"{_SELF}.__post_init__()")
    parameters = (*positional, "*", *named) if named else positional
    real = _compile(cls, "__init__", parameters, "; ".join(body or ["pass"]), known)
    real.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return real


def _compile_eq(cls: Any) -> Any:
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    mine, others = _tuple("self", names), _tuple("other", names)
    body = f"return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return _compile(cls, "__eq__", ("self", "other"), body, {})


def _compile_hash(cls: Any) -> Any:
    fields = dataclasses.fields(cls)
    names = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return _compile(cls, "__hash__", ("self",), f"return hash({_tuple('self', names)})", {})


def _tuple(of: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{of}.{name},' for name in names)})"


def _compile(cls: type, name: str, parameters: Sequence[str], body: str, known: Mapping[str, Any]) -> Any:
    """Compile a method whose body may name what is known, in the module of its class, as the standard library does."""
    text = f"def make({','.join(known)}):\n def {name}({','.join(parameters)}): {body}\n return {name}"
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), made)  # noqa: S102 (names of a class's own fields)
    real = made["make"](**known)
    real.__qualname__ = f"{cls.__qualname__}.{name}"
    return real


class _Factory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


@recursive_repr()
def _represent(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> None:  # noqa: ARG001 (Python hands them)
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:  # noqa: ARG001 (Python hands it)
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
