"""Every algorithm of the library by the name that specs and saved files use: the one list that names them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from belated.algorithms.agent import Settings
from belated.validate import choice, refuse

#: Where each algorithm is defined: its module in this package, and its class. The name is the class's `kind`.
PLACES = {
    "psvi": "psvi:DelayedPSVI",
    "auto-psvi": "auto_psvi:AutoPSVI",
    "lpsvi": "lpsvi:DelayedLPSVI",
    "phe": "phe:DelayedPHE",
    "ucbvi": "ucbvi:DelayedUCBVI",
    "tabular-ucbvi": "tabular_ucbvi:TabularUCBVI",
    "psrl": "psrl:DelayedPSRL",
    "multi-batch": "multi_batch:MultiBatch",
    "pslb": "pslb:DelayedPSLB",
    "ofu": "ofu:DelayedOFU",
    "rare-switching": "rare_switching:RareSwitching",
    "otf-linucb": "otf:OTFLinUCB",
    "otf-lints": "otf:OTFLinTS",
    "qpm-d": "qpmd:QPMD",
    "bold": "bold:BOLD",
    "oppo": "oppo:DelayedOPPO",
    "dapo": "dapo:DelayedDAPO",
    "q-learning": "q_learning:DelayedQLearning",
    "epsilon-greedy": "epsilon_greedy:EpsilonGreedy",
    "greedy": "greedy:Greedy",
    "random": "random_policy:RandomPolicy",
    "fixed": "fixed_policy:FixedPolicy",
}


class Registry(Mapping[str, type[Settings]]):
    """The settings classes by name; a module is imported when its class is first asked for."""

    def __getitem__(self, kind: str) -> type[Settings]:
        """Return the settings class of that name."""
        module, _, name = PLACES[kind].partition(":")
        algorithm: type[Settings] = getattr(import_module(f"belated.algorithms.{module}"), name)
        return algorithm

    def __contains__(self, kind: object) -> bool:
        """Tell whether there is such a name; nothing is imported."""
        return kind in PLACES

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(PLACES)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(PLACES)


ALGORITHMS: Mapping[str, type[Settings]] = Registry()


def algorithm_from_dict(specification: Mapping[str, Any]) -> Settings:
    """Return the algorithm that `specification` describes, the inverse of `to_dict`.

    >>> algorithm_from_dict({"algorithm": "epsilon-greedy", "epsilon": 0.2})
    EpsilonGreedy(epsilon=0.2, ridge=1.0)
    """
    if not isinstance(specification, Mapping) or "algorithm" not in specification:
        raise refuse("the specification", specification, "a mapping with the field 'algorithm'")
    name = choice("algorithm", specification["algorithm"], ALGORITHMS)
    return ALGORITHMS[name].from_dict(dict(specification))
