"""Environments by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.environments._adversarial import AdversarialMDP
from belated.environments._bandit import LinearBandit
from belated.environments._chains import Chain, NChain, RiverSwim
from belated.environments._classification import ClassificationBandit
from belated.environments._deepsea import DeepSea
from belated.environments._finite import FiniteMDP
from belated.environments._funnel import ShopFunnel
from belated.environments._linear import RandomLinearMDP, SyntheticLinearMDP

ENVIRONMENTS: dict[str, type[FiniteMDP]] = {
    "synthetic": SyntheticLinearMDP,
    "riverswim": RiverSwim,
    "random-linear": RandomLinearMDP,
    "deepsea": DeepSea,
    "chain": Chain,
    "nchain": NChain,
    "linear-bandit": LinearBandit,
    "classification": ClassificationBandit,
    "adversarial": AdversarialMDP,
    "funnel": ShopFunnel,
}
"""The built-in environments by their names in experiment files."""


def _fits(kind: type) -> bool:
    return all(hasattr(kind, name) for name in ("label", "problem", "reset", "step", "encode", "describe"))


KIND = Kind(
    field="environment",
    group="belated.environments",
    ours=ENVIRONMENTS,
    expected="a belated Environment (a class of Gymnasium: environment = 'gymnasium', factory = its name)",
    fits=lambda made: _fits(type(made)),
    fits_class=_fits,
)


def environment_from_dict(specification: Mapping[str, Any], *, also: Iterable[str] = ()) -> FiniteMDP:
    """Return the environment described by plain values, the inverse of `to_dict`.

    The field `environment` is a built-in name, one registered by an installed package, or `module:Name`. `also` are
    further names for the list in the error message.

    >>> environment_from_dict({"environment": "riverswim", "states": 6})
    RiverSwim('riverswim-6', states=6, actions=2, dimension=12, horizon=20)
    """
    if not isinstance(specification, Mapping) or "environment" not in specification:
        raise refuse("the specification", specification, "a mapping with the field 'environment'")
    settings = dict(specification)
    name = settings.pop("environment")
    made: FiniteMDP = KIND.make(name, KIND.own(name, also) or ENVIRONMENTS[name], settings)
    return made
