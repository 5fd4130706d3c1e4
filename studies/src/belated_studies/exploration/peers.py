"""DQN and PPO of Stable-Baselines3, as peers in a separate virtual environment: their games and settings.

They play the same episodes as the library's agents, under the same delays: both seeds are drawn here and passed to the
script, which does not need belated. If a peer cannot be installed or run, its row says so.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated.delays import DelayDistribution
from belated.environments._gym_environment import episode_seed
from belated.types import Floats
from belated_studies import peer_scripts
from belated_studies.exploration.problems import Problem, Size
from belated_studies.peer_environments import Peer, PeerError, cache_folder, install, run_script
from belated_studies.study import Measurement, Played

DQN, PPO = "dqn", "ppo"
SEEDS = 3
"""Number of seeds: a network takes minutes for what our agents do in seconds."""
PATIENCE = 4 * 3600
"""Timeout of a run in seconds."""
PEER = Peer(
    name="stable-baselines3",
    script=Path(peer_scripts.__file__).parent / "use_stable_baselines3.py",
    requirements=("stable-baselines3==2.9.2", "torch==2.13.0", "gymnasium[box2d]==1.4.0", "numpy==2.4.6"),
)

_WIDE = {"policy_kwargs": {"net_arch": [256, 256]}}
_LANDER_AND_ACROBOT = {
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
    **_WIDE,
}
#: The settings of RL Baselines3 Zoo: total steps for schedules, and hyperparameters. The Zoo runs PPO in several
#: parallel environments; here `n_steps` is their total.
ZOO: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {
    (DQN, "CartPole-v1"): (
        50_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            **_WIDE,
        },
    ),
    (DQN, "MountainCar-v0"): (
        120_000,
        {
            "learning_rate": 4e-3,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 1000,
            "gamma": 0.98,
            "target_update_interval": 600,
            "train_freq": 16,
            "gradient_steps": 8,
            "exploration_fraction": 0.2,
            "exploration_final_eps": 0.07,
            **_WIDE,
        },
    ),
    (DQN, "Acrobot-v1"): (
        100_000,
        _LANDER_AND_ACROBOT,
    ),
    (DQN, "LunarLander-v3"): (
        100_000,
        _LANDER_AND_ACROBOT,
    ),
    (PPO, "LunarLander-v3"): (
        1_000_000,
        {"n_steps": 16 * 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01},
    ),
    (PPO, "CartPole-v1"): (
        100_000,
        {
            "n_steps": 8 * 32,
            "batch_size": 256,
            "gae_lambda": 0.8,
            "gamma": 0.98,
            "n_epochs": 20,
            "ent_coef": 0.0,
            "learning_rate": "lin_0.001",
            "clip_range": "lin_0.2",
        },
    ),
    (PPO, "MountainCar-v0"): (
        1_000_000,
        {"normalize": True, "n_steps": 16 * 16, "gae_lambda": 0.98, "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0},
    ),
    (PPO, "Acrobot-v1"): (
        1_000_000,
        {"normalize": True, "n_steps": 16 * 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0},
    ),
}

#: For problems without RL Zoo settings: chosen by hand so that DQN learns them, with seed 2000. Its defaults do not.
BY_HAND: dict[str, Any] = {
    "learning_rate": 1e-3,
    "batch_size": 64,
    "buffer_size": 50_000,
    "learning_starts": 500,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": 4,
    "exploration_fraction": 0.2,
    "exploration_final_eps": 0.05,
    "policy_kwargs": {"net_arch": [64, 64]},
}


@dataclass(frozen=True)
class Game:
    """A game for the peers, in plain Gymnasium."""

    id: str
    steps: int | None = None
    """Steps after which an episode is truncated; None for the environment's limit."""
    sparse: bool = False
    """Whether the reward is 1 at termination and 0 otherwise."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = SEEDS
    by_hand: bool = False
    """Whether DQN uses the hand-chosen settings."""

    def settings(self, agent: str, problem: Problem) -> tuple[int, dict[str, Any]]:
        """Return the total steps for schedules, and the settings; empty for the defaults."""
        by_hand = BY_HAND if self.by_hand and agent == DQN else {}
        return ZOO.get((agent, self.id), (problem.episodes * int(problem.world.horizon), by_hand))

    def source(self, agent: str) -> str:
        """Return the source of the settings."""
        if self.by_hand and agent == DQN:
            return "settings chosen by hand"
        return "RL-Zoo's settings" if (agent, self.id) in ZOO else "its defaults, not searched for"


class PeerRun(NamedTuple):
    """The returns of a peer in one run, or why there are none."""

    environment: str
    delay: str
    agent: str
    seed: int
    returns: list[float]
    milliseconds: float | None
    """CPU milliseconds per episode."""
    source: str
    """The source of the settings."""
    failed: str = ""


def measurements(games: Mapping[str, Game], problems: Callable[[], Sequence[Problem]]) -> list[Measurement[Size]]:
    """Return a measurement for each peer in each of `games`, by problem: the unit of resumption."""
    return [_measurement(label, game, agent, problems) for label, game in games.items() for agent in (DQN, PPO)]


def _measurement(label: str, game: Game, agent: str, problems: Callable[[], Sequence[Problem]]) -> Measurement[Size]:
    def measure(size: Size) -> Iterator[PeerRun]:
        if size.large:  # left out of a quick run
            (problem,) = [each for each in problems() if each.label == label]
            yield from _runs(problem, game, agent, size)

    return Measurement(
        name=f"peers-{label}-{agent}",
        kind=PeerRun,
        measure=measure,
        lasting=lambda runs: not any(run.failed for run in runs),
    )


def _runs(problem: Problem, game: Game, agent: str, size: Size) -> Iterator[PeerRun]:
    home = cache_folder()
    for delay, distribution in problem.delays.items():
        for seed in range(min(game.seeds, size.seeds)):
            about = (problem.label, delay, agent, seed)
            try:
                prepare(home)
                answer = _answer(task(problem, game, agent, distribution, seed, size), home)
            except PeerError as error:
                yield PeerRun(*about, [], None, game.source(agent), str(error))
                break  # the other seeds would fail as well
            yield PeerRun(*about, answer["returns"], answer["milliseconds"], game.source(agent))


_not_installed: dict[Path, str] = {}
"""Why installation in a folder failed, so that a process tries it only once."""


def prepare(home: Path) -> None:
    """Install the peers, unless they are installed or installation has failed before."""
    if PEER.ready(home):
        return
    if home not in _not_installed:
        try:
            install(PEER, home)
        except PeerError as error:
            _not_installed[home] = f"it could not be installed: {error}"
        else:
            return
    raise PeerError(_not_installed[home])


def task(
    problem: Problem, game: Game, agent: str, distribution: DelayDistribution, seed: int, size: Size
) -> dict[str, Any]:
    """Return the description of a run for the script, as plain values."""
    episodes = problem.shortened(size)
    total, settings = game.settings(agent, problem)
    return {
        "game": asdict(game),
        "agent": agent,
        "settings": settings,
        "total": total,
        "seed": seed,
        "delays": distribution.sample(stream(seed, "delay"), episodes).tolist(),
        "seeds": [episode_seed(seed, episode) for episode in range(episodes)],
    }


def _answer(wanted: dict[str, Any], home: Path) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "task.json"
        file.write_text(json.dumps(wanted), encoding="utf-8")
        answer = run_script(PEER, home, file, timeout=PATIENCE)
    if not isinstance(answer, dict) or len(answer.get("returns", ())) != len(wanted["delays"]):
        raise PeerError(f"{PEER.script.name} did not play every episode")
    return answer


def runs_of(played: Played[Size], problem: Problem, delay: str) -> dict[str, list[PeerRun]]:
    """Return all runs of peers on one problem under one delay, by agent, in the order of their seeds."""
    found: dict[str, list[PeerRun]] = {}
    for values in played.measured.values():
        for run in values:
            if isinstance(run, PeerRun) and (run.environment, run.delay) == (problem.label, delay):
                found.setdefault(run.agent, []).append(run)
    return {agent: sorted(runs, key=lambda run: run.seed) for agent, runs in found.items()}


def returns_of(runs: Sequence[PeerRun]) -> Floats:
    """Return the returns of runs that did not fail, shape (seeds, episodes)."""
    return np.array([run.returns for run in runs if not run.failed], dtype=np.float64)
