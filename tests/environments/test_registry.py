import json
from typing import Any

import numpy as np
import pytest

from belated.environments import (
    ENVIRONMENTS,
    DeepSea,
    FiniteMDP,
    NChain,
    RandomLinearMDP,
    RiverSwim,
    SyntheticLinearMDP,
    environment_from_dict,
)
from belated.errors import InvalidInputError, UnknownNameError

EXAMPLES = [
    SyntheticLinearMDP(),
    SyntheticLinearMDP(7, 4, [1, 0, 0, 1], "appendix", True, True),
    RiverSwim(6, 12, 0.4, 0.1),
    RandomLinearMDP(4, 3, 2, 5, 6, True),
    DeepSea(5),
    DeepSea(5, randomised=True, stochastic=True, seed=3),
    NChain(7),
    NChain(7, slip=0.1),
]


@pytest.mark.parametrize("mdp", EXAMPLES, ids=lambda mdp: mdp.label)
def test_round_trip_through_json(mdp: FiniteMDP) -> None:
    again = environment_from_dict(json.loads(json.dumps(mdp.to_dict())))
    assert type(again) is type(mdp)
    assert again.to_dict() == mdp.to_dict()
    assert (again.label, again.bernoulli) == (mdp.label, mdp.bernoulli)
    for name in ("transitions", "rewards", "features", "start"):
        np.testing.assert_array_equal(getattr(again, name), getattr(mdp, name))


def test_specifications_hold_no_missing_values() -> None:
    for mdp in EXAMPLES:
        assert None not in mdp.to_dict().values()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_name_is_enough(name: str) -> None:
    assert name == name.lower()
    mdp = environment_from_dict({"environment": name})
    assert type(mdp) is ENVIRONMENTS[name]
    assert mdp.to_dict()["environment"] == name


def test_the_specification_is_left_alone() -> None:
    specification = {"environment": "deepsea", "size": 3}
    environment_from_dict(specification)
    assert specification == {"environment": "deepsea", "size": 3}


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match=r"environment must be one of .* did you mean 'riverswim'"):
        environment_from_dict({"environment": "riverswin"})


def test_unknown_field() -> None:
    with pytest.raises(InvalidInputError, match=r"no setting 'sise'; its settings are: size, .*, seed"):
        environment_from_dict({"environment": "deepsea", "sise": 4})


@pytest.mark.parametrize("specification", [{}, {"size": 4}, "deepsea", None])
def test_a_specification_names_its_environment(specification: Any) -> None:
    with pytest.raises(InvalidInputError, match="mapping with the field 'environment'"):
        environment_from_dict(specification)
