from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from belated.environments import ENVIRONMENTS, RiverSwim
from belated.errors import InvalidInputError
from belated.gymnasium import IDS


def test_every_environment_has_an_id() -> None:
    assert sorted(IDS.values()) == sorted(ENVIRONMENTS)
    for name in ("RiverSwim", "NChain", "DeepSea", "SyntheticLinearMDP", "Chain"):
        assert f"belated/{name}-v0" in gymnasium.registry


@pytest.mark.parametrize("environment", IDS)
def test_passes_the_checker_of_gymnasium(environment: str) -> None:
    for mode in ("ansi", "rgb_array"):
        env = gymnasium.make(environment, render_mode=mode)
        env.reset(seed=0)
        shown = env.render()
        assert isinstance(shown, str if mode == "ansi" else np.ndarray)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*truncates after 1 step.*")
            check_env(env.unwrapped)


def test_settings_are_those_of_the_class() -> None:
    env = gymnasium.make("belated/RiverSwim-v0", states=7, horizon=30)
    assert env.unwrapped.mdp.to_dict() == RiverSwim(states=7, horizon=30).to_dict()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match="no setting 'length'; its settings are: states, horizon, forward"):
        gymnasium.make("belated/RiverSwim-v0", length=7)


def test_a_specification_is_made_again() -> None:
    env = gymnasium.make("belated/DeepSea-v0", size=30, randomised=True)
    assert env.spec is not None
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.label == "deepsea-30-randomised"  # type: ignore[attr-defined]


def test_the_module_can_be_named_together_with_the_id() -> None:
    """In a process of its own, which has imported nothing of the library before."""
    program = (
        "import gymnasium\n"
        "env = gymnasium.make('belated.gymnasium:belated/NChain-v0', size=9)\n"
        "assert env.reset(seed=0)[0] == 1 and env.unwrapped.horizon == 17\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_gymnasium_the_error_says_what_to_install() -> None:
    program = (
        "import sys\n"
        "sys.modules['gymnasium'] = None\n"
        "import belated, belated.features\n"
        "world = belated.RiverSwim(states=3, horizon=4)\n"
        "print(world.optimal_value)\n"
        "try:\n    import belated.gymnasium\n"
        "except belated.BelatedError as error:\n    print(error)\n"
        "from belated.environments import GymEnvironment\n"
        "try:\n    GymEnvironment('CartPole-v1')\n"
        "except belated.BelatedError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'belated[gym]'") == 2
