"""The named environments, and how one is made from a plain specification."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.environments._adversarial import AdversarialMDP
from belated.environments._bandit import LinearBandit
from belated.environments._chain import Chain
from belated.environments._classification import ClassificationBandit
from belated.environments._deepsea import DeepSea
from belated.environments._finite import FiniteMDP
from belated.environments._nchain import NChain
from belated.environments._random_linear import RandomLinearMDP
from belated.environments._riverswim import RiverSwim
from belated.environments._synthetic import SyntheticLinearMDP
from belated.errors import InvalidInputError

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
}
"""The class behind each name that experiment files use."""


def _fits(kind: type) -> bool:
    from belated.environments._gym_environment import GymEnvironment  # it builds on this module

    return issubclass(kind, FiniteMDP | GymEnvironment)


KIND = Kind(
    field="environment",
    group="belated.environments",
    ours=ENVIRONMENTS,
    expected="a FiniteMDP or a GymEnvironment (a class of Gymnasium: environment = 'gymnasium', factory = its name)",
    fits=lambda made: _fits(type(made)),
    fits_class=_fits,
)


def environment_from_dict(specification: Mapping[str, Any], *, also: Iterable[str] = ()) -> FiniteMDP:
    """Return the environment that `specification` describes, the inverse of `to_dict`.

    The field `environment` is one of the library's names, one that an installed package brings, or `module:Name`.
    `also` are names that mean something where it is asked, to be listed with the others.

    >>> environment_from_dict({"environment": "riverswim", "states": 6})
    RiverSwim('riverswim-6', states=6, actions=2, dimension=12, horizon=20)
    """
    if not isinstance(specification, Mapping) or "environment" not in specification:
        raise refuse("the specification", specification, "a mapping with the field 'environment'")
    settings = dict(specification)
    name = settings.pop("environment")
    found = KIND.own(name, also)
    if found is not None:
        made: FiniteMDP = KIND.make(name, found, settings)
        return made
    known = list(inspect.signature(ENVIRONMENTS[name]).parameters)
    for field in settings:
        if field not in known:
            raise InvalidInputError(f"{name!r} has the fields {', '.join(known)}, got {field!r}")
    return ENVIRONMENTS[name](**settings)
