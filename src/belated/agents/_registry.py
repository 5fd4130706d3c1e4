"""The registry of all built-in algorithms, by their names in specifications and saved files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from belated._util.plugins import Kind, has_method
from belated._util.validate import refuse
from belated.agents._base import Settings
from belated.types import Algorithm

#: Module and class of each algorithm. The name is the class's `kind`.
PLACES = {
    "psvi": "_psvi:DelayedPSVI",
    "auto-psvi": "_auto_psvi:AutoPSVI",
    "lpsvi": "_lpsvi:DelayedLPSVI",
    "weighted-psvi": "_weighted_psvi:VarianceWeightedPSVI",
    "phe": "_phe:DelayedPHE",
    "ucbvi": "_ucbvi:DelayedUCBVI",
    "tabular-ucbvi": "_tabular_ucbvi:TabularUCBVI",
    "psrl": "_psrl:DelayedPSRL",
    "multi-batch": "_multi_batch:MultiBatch",
    "pslb": "_pslb:DelayedPSLB",
    "ofu": "_ofu:DelayedOFU",
    "rare-switching": "_rare_switching:RareSwitching",
    "otf-linucb": "_otf:OTFLinUCB",
    "otf-lints": "_otf:OTFLinTS",
    "by-age": "_by_age:LearnByAge",
    "qpm-d": "_qpmd:QPMD",
    "bold": "_bold:BOLD",
    "oppo": "_oppo:DelayedOPPO",
    "dapo": "_dapo:DelayedDAPO",
    "q-learning": "_q_learning:DelayedQLearning",
    "epsilon-greedy": "_epsilon_greedy:EpsilonGreedy",
    "greedy": "_greedy:Greedy",
    "random": "_random_policy:RandomPolicy",
    "fixed": "_fixed_policy:FixedPolicy",
}


class Registry(Mapping[str, type[Settings]]):
    """The settings classes by name, imported lazily."""

    def __getitem__(self, kind: str) -> type[Settings]:
        module, _, name = PLACES[kind].partition(":")
        algorithm: type[Settings] = getattr(import_module(f"belated.agents.{module}"), name)
        return algorithm

    def __contains__(self, kind: object) -> bool:
        return kind in PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


AGENTS: Mapping[str, type[Settings]] = Registry()
"""The settings class of each name in experiment files, imported lazily."""


KIND = Kind(
    field="algorithm",
    group="belated.agents",
    ours=AGENTS,
    expected="an algorithm, with a method start(problem)",
    fits=lambda made: not isinstance(made, type) and callable(getattr(made, "start", None)),
    fits_class=lambda kind: has_method(kind, "start"),
)


def agent_from_dict(specification: Mapping[str, Any], *, also: Iterable[str] = ()) -> Algorithm:
    """Return the algorithm that `specification` describes, the inverse of `to_dict`.

    The field `algorithm` is a built-in name, one registered by an installed package, or `module:Name`, which is
    imported. `also` are further names, valid for the caller, for the list in an error message.

    >>> agent_from_dict({"algorithm": "epsilon-greedy", "epsilon": 0.2})
    EpsilonGreedy(ridge=1.0, shared=False, epsilon=0.2)
    """
    if not isinstance(specification, Mapping) or "algorithm" not in specification:
        raise refuse("the specification", specification, "a mapping with the field 'algorithm'")
    settings = dict(specification)
    name = settings["algorithm"]
    found = KIND.own(name, also)
    if found is None:
        return AGENTS[name].from_dict(settings)
    made: Algorithm
    if hasattr(found, "from_dict"):
        made = KIND.made(name, lambda: found.from_dict(settings))
        return made
    del settings["algorithm"]
    for key, value in settings.items():  # nested settings, as of wrappers
        if isinstance(value, Mapping) and "algorithm" in value:
            settings[key] = agent_from_dict(value)
    made = KIND.make(name, found, settings)
    return made
