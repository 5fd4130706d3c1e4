import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from belated.environments import AdversarialMDP, DeepSea, FiniteMDP, RandomLinearMDP, RiverSwim, as_gymnasium
from belated.environments._finite_env import DeepSeaEnv
from belated.errors import BelatedError, InvalidInputError
from belated.types import TablePolicy

MODELS = [RiverSwim(horizon=6), RandomLinearMDP(), RandomLinearMDP(bernoulli=True), AdversarialMDP()]


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_passes_the_checker_of_gymnasium(mdp: FiniteMDP) -> None:
    check_env(as_gymnasium(mdp), skip_render_check=True)


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_draws_the_episode_that_rollout_draws(mdp: FiniteMDP) -> None:
    policy = TablePolicy(np.ones((mdp.horizon, mdp.states), dtype=np.int64))
    environment = as_gymnasium(mdp)
    state, info = environment.reset(seed=3)
    expected = mdp.rollout(policy, np.random.Generator(np.random.PCG64(np.random.SeedSequence(3))))
    assert (state, info) == (expected.states[0], {"step": 0})
    for h in range(mdp.horizon):
        state, reward, terminated, truncated, info = environment.step(np.int64(policy.act(h, int(state))))
        assert (state, reward) == (expected.states[h + 1], expected.rewards[h])
        assert (terminated, truncated) == (h == mdp.horizon - 1, False)
        assert info == {"step": h + 1}


def test_a_step_needs_an_episode() -> None:
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
    with pytest.raises(InvalidInputError, match="action must be an integer >= 0 and <= 1, got 2"):
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


@pytest.mark.parametrize("randomised", [False, True])
@pytest.mark.parametrize("stochastic", [False, True])
def test_the_sea_without_tables_plays_the_same_episodes(randomised: bool, stochastic: bool) -> None:
    tables = as_gymnasium(DeepSea(6, randomised, stochastic))
    bare = DeepSeaEnv(6, randomised, stochastic)
    assert bare.label == tables.label
    actions = np.random.default_rng(0).integers(2, size=(40, 6))
    for episode, row in enumerate(actions):
        seed = 5 if episode == 0 else None
        assert bare.reset(seed=seed) == tables.reset(seed=seed)
        for action in row:
            assert bare.step(action) == tables.step(action)
    check_env(bare, skip_render_check=True)


def test_a_large_sea_needs_no_tables() -> None:
    sea = DeepSeaEnv(100, randomised=True)
    assert sea.mdp is None
    assert isinstance(DeepSeaEnv(20).mdp, DeepSea)
    sea.reset(seed=0)
    for row in range(100):
        state, reward, terminated, _, _ = sea.step(np.int64(sea._right[row * 101]))
    assert (int(state), reward, terminated) == (9999, 1.0, True)


def test_episodes_are_counted_or_told() -> None:
    mdp = AdversarialMDP(adversary="drifting")
    env = as_gymnasium(mdp)
    tables = mdp.world.rewards[:, 0]

    def rewards(episode: int | None, seed: int | None) -> float:
        state, _ = env.reset(seed=seed, options=None if episode is None else {"episode": episode})
        return env.step(np.int64(0))[1] - float(tables[0 if seed is not None else env._episode % len(tables), state, 0])

    assert [rewards(None, 3), rewards(None, None), rewards(7, None), rewards(None, None)] == [0.0] * 4
    assert env._episode == 8
    with pytest.raises(InvalidInputError, match=r'options\["episode"\] must be an integer >= 0, got -1'):
        env.reset(options={"episode": -1})
