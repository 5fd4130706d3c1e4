"""Other packages that a user might pick, each timed in an environment of its own."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents import DelayedPSLB, DelayedUCBVI
from belated.decisions import DecisionLearner, Unknown
from belated.delays import Constant
from belated.environments import Bandit, SyntheticLinearMDP
from belated.runner import simulate
from belated.types import Floats
from belated_studies.peer_environments import Peer, PeerError, cache_folder, install, run_script
from belated_studies.timing import seconds
from benchmarks.measure import Measure, Target, at_least, median_duration, ratios, unmeasured
from benchmarks.problems import FULL, Effort

SCRIPTS = Path(__file__).parent / "peer_scripts"
#: Where the scripts find what they share.
ROOT = Path(__file__).parents[1]

#: What of ours is compared with bandits.
PSLB, TRUE, FAST = "Delayed-PSLB", "DecisionLearner", "DecisionLearner with one draw"
#: By how much each of ours should be faster than a peer; the others have no target.
TARGETS: dict[str, dict[str, Target]] = {
    "rlberry-scool": {"Delayed-UCBVI": at_least(2000)},
    "bayesianbandits": {PSLB: at_least(20), TRUE: at_least(4), FAST: at_least(8)},
    "vowpalwabbit": {TRUE: at_least(1), FAST: at_least(1)},
}

DIMENSION, ACTIONS, NOISE, WARM_UP = 100, 10, 0.1, 20


@dataclass(frozen=True, kw_only=True)
class TimedPeer(Peer):
    """A package with a script that times it."""

    against: str
    """What one unit of its time is: "episodes" of an MDP or "rounds" of a bandit."""
    imports: Path | None = ROOT


def peers() -> dict[str, TimedPeer]:
    """Return the peers by name."""
    listed = tomllib.loads((SCRIPTS / "peers.toml").read_text(encoding="utf-8"))
    return {
        name: TimedPeer(
            name=name,
            script=SCRIPTS / each["script"],
            against=each["against"],
            requirements=tuple(each["requirements"]),
        )
        for name, each in listed.items()
    }


def times(peer: Peer, home: Path, data: Path) -> dict[str, float]:
    """Run the script of `peer` on the file `data` and return the seconds of a unit of each thing it timed."""
    answer = run_script(peer, home, data)
    try:
        return {each["what"]: float(each["seconds"]) for each in answer}
    except (ValueError, KeyError, TypeError):
        raise PeerError(f"{peer.script.name} printed no figures") from None


def prepare(peer: Peer, effort: Effort, tell: Callable[[str], None], home: Path) -> None:
    """Install `peer` if it is not there yet and `effort` allows."""
    if peer.ready(home):
        return
    if not effort.patient:
        raise PeerError("it is not installed yet; run without --quick")
    tell(f"installing {peer.name} into {peer.folder(home)}")
    install(peer, home)


def measure_peer(
    peer: TimedPeer, effort: Effort, tell: Callable[[str], None], home: Path | None = None
) -> list[Measure]:
    """Compare with one peer, which is installed first if `effort` allows; a peer that fails is reported as such."""
    home = home or cache_folder()
    targets = TARGETS.get(peer.name, {})
    if peer.against == "episodes" and effort.peer_episodes < FULL.peer_episodes:
        targets = {}  # with fewer episodes ours is mostly the fixed cost of a run, and theirs has hardly grown
    first = next(iter(targets.values()), None)
    try:
        prepare(peer, effort, tell, home)
        tell(f"measuring {peer.name}")
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data.npz"
            arrays, ours = (episodes if peer.against == "episodes" else rounds)(effort)
            np.savez(data, **arrays)
            return compare(peer.name, lambda: times(peer, home, data), ours, effort.repeats, targets)
    except PeerError as error:
        return [unmeasured(peer.name, str(error), target=first)]


@dataclass(frozen=True)
class Ours:
    """What of the library a peer is compared with: its name, how to time a unit of it, and what that is."""

    name: str
    time: Callable[[], float]
    unit: str


def compare(
    name: str,
    theirs: Callable[[], dict[str, float]],
    ours: Sequence[Ours],
    repeats: int,
    targets: Mapping[str, Target],
) -> list[Measure]:
    """Let all take turns, the peer first every other time, and return a ratio for each thing they timed."""
    for each in ours:
        each.time()  # compiles, and touches the memory
    slow: dict[str, list[float]] = {}
    fast: dict[str, list[float]] = {each.name: [] for each in ours}

    def play_ours() -> None:
        for each in ours:
            fast[each.name].append(each.time())

    for repeat in range(repeats):
        if repeat % 2:
            play_ours()
        for what, taken in theirs().items():
            slow.setdefault(what, []).append(taken)
        if repeat % 2 == 0:
            play_ours()
    return [
        Measure(
            f"{name}: {what}, against {each.name}" if len(ours) > 1 else f"{name}: {what}",
            ratios(taken, fast[each.name]),
            target=targets.get(each.name),
            note=(
                f"against {each.name}, {each.unit}; {median_duration(taken)} against {median_duration(fast[each.name])}"
            ),
        )
        for what, taken in slow.items()
        for each in ours
    ]


def episodes(effort: Effort) -> tuple[dict[str, Any], list[Ours]]:
    """Return an MDP as arrays, and Delayed-UCBVI on it without delay.

    α is constant, so that no step differs from another: LSVI-UCB of the peer has one regression for all steps.
    """
    world = SyntheticLinearMDP(actions=50, alpha=[0] * 20)
    count = effort.peer_episodes
    arrays = {
        "features": world.features,
        "transitions": world.transitions[0],
        "rewards": world.rewards[0],
        "horizon": world.horizon,
        "episodes": count,
    }

    def ours() -> float:
        return seconds(lambda: simulate(world, DelayedUCBVI(), Constant(0), episodes=count, seed=0)) / count

    return arrays, [Ours("Delayed-UCBVI", ours, f"one episode of {count}, S=2 A=50 d=10 H=20")]


def rounds(effort: Effort) -> tuple[dict[str, Any], list[Ours]]:
    """Return a stream of contexts and rewards, and what of ours learns from it: Delayed-PSLB and `DecisionLearner`.

    Delayed-PSLB plays the contexts as a bandit in the runner's loop, where the environment, the exact value and the row
    of each round are part of its time; `DecisionLearner` is called from Python for each decision and each reward, once
    at its defaults (true probabilities, of 32 draws) and once with one draw, as the peers do it.

    Action a has the features x∘s_a, the context times the action's signs, so that both kinds of model are right: one
    with weights θ for all actions, and one with weights s_a∘θ for each.
    """
    rng = stream(0, "bench")
    count = effort.rounds + WARM_UP
    contexts = rng.standard_normal((count, DIMENSION)) / np.sqrt(DIMENSION)
    signs = rng.choice([-1.0, 1.0], size=(ACTIONS, DIMENSION))
    theta = rng.standard_normal(DIMENSION)
    rewards: Floats = contexts @ (signs * theta).T + NOISE * rng.standard_normal((count, ACTIONS))
    arrays = {"contexts": contexts, "signs": signs, "rewards": rewards, "noise": NOISE, "warm_up": WARM_UP}

    bandit = Bandit(contexts[:, np.newaxis] * signs, contexts @ (signs * theta).T, in_turn=True, noise=NOISE)
    pslb = DelayedPSLB(draws=1, noise=NOISE)

    def by_pslb() -> float:
        # as many rounds as make the fixed cost of a run small, through the same contexts again and again
        played = 20 * count
        with threadpool_limits(1):
            return seconds(lambda: simulate(bandit, pslb, Constant(0), episodes=played, seed=0)) / played

    def by_decisions(**options: Any) -> float:
        learner = DecisionLearner(DIMENSION, silence=Unknown(), noise=NOISE, **options)

        def play(first: int, last: int) -> None:
            for t in range(first, last):
                decision = learner.decide(contexts[t] * signs)
                learner.feedback(decision.id, float(rewards[t, decision.action]))

        play(0, WARM_UP)
        with threadpool_limits(1):
            return seconds(lambda: play(WARM_UP, count)) / effort.rounds

    size = f"one decision and its reward, d={DIMENSION}, {ACTIONS} actions"
    return arrays, [
        Ours(PSLB, by_pslb, size),
        Ours(TRUE, by_decisions, size),
        Ours(FAST, lambda: by_decisions(draws=1, floor=0.0), size),
    ]
