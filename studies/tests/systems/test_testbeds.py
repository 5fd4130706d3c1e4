"""The testbeds are what they say: sizes, distributions, seeds apart from those of the searches."""

from __future__ import annotations

import belated
from belated.delays import NEVER, DelayByReward
from belated_studies.systems.testbeds import FULL, QUICK, SILENT, TOLD, WINDOW, mdp_agents


def test_silence_is_never_told_and_the_window_tells() -> None:
    assert isinstance(SILENT, DelayByReward)
    assert SILENT.zero.quantile(0.001) == NEVER
    assert TOLD.zero == belated.Constant(WINDOW)
    assert SILENT.positive == TOLD.positive


def test_other_seeds_are_those_of_all_and_other_episodes_have_a_folder_of_their_own() -> None:
    few = QUICK.resized(seeds=2)
    assert (few.seeds, few.slow_seeds, few.folder, few.episodes) == (2, 2, "quick", QUICK.episodes)
    short = FULL.resized(episodes=50)
    assert (short.episodes, short.rounds, short.seeds) == (50, FULL.rounds, FULL.seeds)
    assert short.folder not in (FULL.folder, FULL.resized(episodes=51).folder)


def test_perturbing_and_solving_draws_as_posterior_sampling_does() -> None:
    agents = {name: agent.to_dict() for name, agent in mdp_agents(QUICK).items()}
    for setting in ("scale", "noise", "ridge", "draws"):
        assert agents["phe"][setting] == agents["psvi"][setting]
    assert agents["tabular-ucbvi"]["episodes"] == QUICK.episodes
    assert agents["multi-batch"]["base"] == agents["ucbvi"]
