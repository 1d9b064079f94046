"""Every mechanism that a question may name, the default first."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from mechanisms.dppwlm import Dppwlm
from mechanisms.formula import Formula
from mechanisms.keyhole import Keyhole
from mechanisms.mim import MimBaseline, MimProgressive
from mechanisms.naive import Naive
from mechanisms.nlm import Nlm
from mechanisms.ppwlm import Ppwlm
from mechanisms.probe import Probe
from mechanisms.progressive import Progressive
from mechanisms.protocol import DecisionTask, Mechanism, Unachievable
from mechanisms.tslm import Tslm

_ALL: tuple[Mechanism, ...] = (
    Keyhole(),
    Progressive(),
    Tslm(),
    Nlm(),
    Ppwlm(),
    Dppwlm(),
    MimBaseline(),
    MimProgressive(),
    Naive(),
    Probe(),
)

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType({mechanism.name: mechanism for mechanism in _ALL})
DEFAULT = _ALL[0].name


def compare(task: DecisionTask, as_typed: Formula) -> dict[str, float]:
    """The worst-case epsilon of the published baselines for the same contract on the formula as typed.

    Parameters:
        task: the question's contract and sensitivities.
        as_typed: the formula before minimisation, over the same functionals.

    A baseline that cannot meet the contract (a tolerance of zero) is left out.
    """
    typed = replace(task, formula=as_typed)
    found: dict[str, float] = {}
    for name in ("naive", "probe"):
        try:
            found[name] = MECHANISMS[name].calibrate(typed).worst_case_epsilon
        except Unachievable:
            continue
    return found
