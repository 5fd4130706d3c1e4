import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, as_gymnasium
from belated.errors import BelatedError, InvalidInputError
from belated.types import Policy

MODELS = [RiverSwim(horizon=6), RandomLinearMDP(), RandomLinearMDP(bernoulli=True)]


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_passes_the_checker_of_gymnasium(mdp: FiniteMDP) -> None:
    check_env(as_gymnasium(mdp), skip_render_check=True)


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_draws_the_episode_that_rollout_draws(mdp: FiniteMDP) -> None:
    policy = Policy(np.ones((mdp.horizon, mdp.states), dtype=np.int64))
    environment = as_gymnasium(mdp)
    state, info = environment.reset(seed=3)
    expected = mdp.rollout(policy, np.random.Generator(np.random.PCG64(np.random.SeedSequence(3))))
    assert (state, info) == (expected.states[0], {"step": 0})
    for h in range(mdp.horizon):
        state, reward, terminated, truncated, info = environment.step(np.int64(policy.act(h, int(state))))
        assert (state, reward) == (expected.states[h + 1], expected.rewards[h])
        assert (terminated, truncated) == (h == mdp.horizon - 1, False)
        assert info == {"step": h + 1}


def test_a_step_needs_an_episode_under_way() -> None:
    environment = as_gymnasium(RiverSwim(horizon=1))
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(np.int64(0))
    environment.reset(seed=0)
    environment.step(np.int64(0))
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(np.int64(0))


def test_bad_input_is_named() -> None:
    environment = as_gymnasium(RiverSwim())
    environment.reset(seed=0)
    with pytest.raises(InvalidInputError, match="action must be a whole number >= 0 and <= 1, got 2"):
        environment.step(2)  # type: ignore[arg-type]
    wrong: Any = "riverswim"
    with pytest.raises(InvalidInputError, match="mdp must be a FiniteMDP, got 'riverswim'"):
        as_gymnasium(wrong)


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(BelatedError, match=r"pip install 'belated\[gym\]'"):
        as_gymnasium(RiverSwim())


def test_importing_the_environments_does_not_import_gymnasium() -> None:
    program = "import sys, belated.environments; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
