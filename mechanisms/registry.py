"""The mechanisms that a question may name, the default first."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from mechanisms.arc.one_look import Arc
from mechanisms.arc.several_looks import ArcLooks
from mechanisms.formula import Formula
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import DecisionTask, Mechanism, Unachievable
from mechanisms.published.dppwlm import Dppwlm, DppwlmBounded
from mechanisms.published.mim import Mim, MimBaseline, MimProgressive
from mechanisms.published.naive import Naive
from mechanisms.published.nlm import Nlm
from mechanisms.published.ppwlm import Ppwlm
from mechanisms.published.probe import Probe
from mechanisms.published.probe_ent import ProbeEnt
from mechanisms.published.probe_one_phase import ProbeOnePhase
from mechanisms.published.sparse_vector import GeneralisedSparseVector, SparseVector
from mechanisms.published.tslm import Tslm

_ALL: tuple[Mechanism, ...] = (
    Progressive(),
    Keyhole(),
    Arc(),
    ArcLooks(),
    Tslm(),
    Nlm(),
    Ppwlm(),
    Dppwlm(),
    DppwlmBounded(),
    MimBaseline(),
    MimProgressive(),
    Mim(),
    SparseVector(),
    GeneralisedSparseVector(),
    Naive(),
    ProbeOnePhase(),
    Probe(),
    Probe(is_gradual=True),
    Probe(shares="equal"),
    ProbeEnt(),
)

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType({mechanism.name: mechanism for mechanism in _ALL})
DEFAULT = _ALL[0].name
BOUNDED = (
    Progressive.name,
    Keyhole.name,
    Arc.name,
    ArcLooks.name,
    Tslm.name,
    Ppwlm.name,
    DppwlmBounded.name,
    MimBaseline.name,
    MimProgressive.name,
    Mim.name,
    Naive.name,
    ProbeOnePhase.name,
    Probe().name,
    Probe(shares="equal").name,
)
"""The mechanisms that bound both error rates of every answer: what a policy allows unless it says otherwise."""
LIMITED = frozenset({SparseVector.name, GeneralisedSparseVector.name})
"""The mechanisms that need, and alone use, `DecisionTask.most_positives`."""
DENYING = frozenset({Probe().name, Probe(is_gradual=True).name, Probe(shares="equal").name, ProbeEnt.name})
"""The mechanisms that may look and then stop without an answer."""
INFORMED = frozenset({Mim.name, MimProgressive.name})
"""The mechanisms that use `DecisionTask.knowledge`."""


def price_baselines(task: DecisionTask, as_typed: Formula) -> dict[str, float]:
    """Return the worst-case epsilon of the published baselines for the same contract on the formula as typed.

    Parameters:
        task: the question's contract and sensitivities.
        as_typed: the formula before minimisation, over the same functionals.

    ProBE is priced with one phase and the whole of both rates, which is less than its two phases reserve. A baseline
    that cannot meet the contract (a tolerance of zero) is left out.
    """
    typed = replace(task, formula=as_typed)
    found: dict[str, float] = {}
    for name, mechanism in (("naive", Naive.name), ("probe", ProbeOnePhase.name)):
        try:
            found[name] = MECHANISMS[mechanism].calibrate(typed).worst_case_epsilon
        except Unachievable:
            continue
    return found
