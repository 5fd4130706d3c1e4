"""Very many sparse features: what a round costs, what is earned beside others, and how near draws are to exact ones."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import DecisionLearner, Unknown
from belated.decisions import _settings as settings
from belated.decisions._members import Row, SparseOffer, SparsePosterior, digest
from belated.types import Floats
from belated_studies.peer_environments import PeerError, cache_folder, run_script
from benchmarks.measure import Measure, at_least, at_most, unmeasured
from benchmarks.peer_scripts import sparse_rounds
from benchmarks.peer_scripts.sparse_rounds import Contestant, Rounds
from benchmarks.peers import SCRIPTS, peers, prepare
from benchmarks.problems import Effort
from benchmarks.service import Running, load
from benchmarks.service import table as table_of_service

ACTIONS, NONZERO, NOISE, DELAY = 10, 30, 0.3, 50
#: The scripts of those who play the same rounds.
OTHERS = {"vowpalwabbit": "sparse_vowpalwabbit.py", "river": "sparse_river.py"}

#: Runs begin with this seed; rules were chosen on seeds below it.
FIRST = 1000
#: Who ask a small model at once, beside a large one.
CALLERS = 8

Tell = Callable[[str], None]


def sparse(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure time and memory."""
    with threadpool_limits(1):
        return costs(effort, tell)


def sparse_learning(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure what is earned beside others."""
    with threadpool_limits(1):
        return rewards(effort, tell)


def sparse_exactness(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure how far draws and probabilities are from exact ones, and what taking back leaves."""
    with threadpool_limits(1):
        return [*undoing(effort, tell), *exactness(effort, tell)]


def sparse_neighbour(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure what a model of 2^18 features in the same service costs those who ask a small one, over HTTP."""
    requests, before = (4_000, 2_000) if effort.patient else (300, 20)
    large = {"action_tags": ["words"], "hashed": 2**18, "silence": {"kind": "unknown"}}
    ratios: list[float] = []
    alone: list[float] = []
    for _ in range(effort.repeats):
        tell("timing a small model alone, and beside a large one")
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk, not in memory
            running = Running(Path(folder), models={"ads": table_of_service(), "large": large})
            try:
                load(running.port, requests, connections=CALLERS)  # warm
                alone.append(load(running.port, requests, connections=CALLERS).late)
                command = [sys.executable, "-m", "benchmarks.neighbour", str(running.port), str(before)]
                other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                assert other.stdout is not None
                other.stdout.readline()
                ratios.append(load(running.port, requests, connections=CALLERS).late / alone[-1])
                played = int(other.communicate("")[0])
            finally:
                running.stop()
    note = (
        f"{CALLERS} callers of the small one ({np.median(alone):.1f} ms alone), one of the large one, each as fast as "
    )
    note += f"answered; {played} rounds of it in all"
    return [
        Measure("a small model's p99 beside one of 2^18 features, over alone", tuple(ratios), "×", at_most(1.5), note)
    ]


def groups_of_five(rounds: int, bits: int, seed: int) -> Rounds:
    """Return rounds in which five features always come together, with a common factor: they are correlated."""
    rng, size = stream(seed, "sparse"), 2**bits
    weights = rng.standard_normal(size) / math.sqrt(NONZERO)
    chosen = rng.integers(size // 5, size=(rounds, ACTIONS, NONZERO // 5))
    chosen = np.sort(chosen, axis=2) + np.arange(NONZERO // 5)  # different ones
    places = (5 * np.minimum(chosen, size // 5 - 1)[..., None] + np.arange(5)).reshape(rounds, ACTIONS, NONZERO)
    common = rng.standard_normal((rounds, ACTIONS, NONZERO // 5, 1))
    values = (common + 0.3 * rng.standard_normal((rounds, ACTIONS, NONZERO // 5, 5))).reshape(places.shape)
    return _rounds(rng, places, values, (values * weights[places]).sum(axis=2), bits, seed)


def text(rounds: int, bits: int, seed: int) -> Rounds:
    """Return rounds in which an action is a text of words, the frequent ones far more often (Zipf), one in ten telling.

    All words count alike in a text; what a text is worth lies between two words and all of them.
    """
    rng, size = stream(seed, "sparse"), 2**bits
    weights = np.where(rng.random(size) < 0.1, rng.standard_normal(size), 0.0)
    shares = 1.0 / (10.0 + np.arange(size))
    places = np.searchsorted(np.cumsum(shares / shares.sum()), rng.random((rounds, ACTIONS, NONZERO)))
    places = np.minimum(places, size - 1)
    places = np.sort(rng.permutation(size)[places], axis=2)
    again = places[:, :, 1:] == places[:, :, :-1]
    values = np.ones(places.shape)
    values[:, :, 1:][again] = 0.0  # a word that comes twice counts once
    return _rounds(rng, places, values, (values * weights[places]).sum(axis=2), bits, seed)


def arms(rounds: int, bits: int, seed: int) -> Rounds:
    """Return rounds in which all actions have the ten features of the context, of 200, with weights of their own."""
    rng, nonzero, common = stream(seed, "sparse"), 10, 200
    weights = rng.standard_normal((ACTIONS, common)) / math.sqrt(nonzero)
    shown = np.sort(rng.integers(common - nonzero, size=(rounds, nonzero)), axis=1) + np.arange(nonzero)
    places = shown[:, None] + common * np.arange(ACTIONS)[:, None]
    means = weights[:, shown].sum(axis=2).T
    return _rounds(rng, places, np.ones(places.shape), means, bits, seed)


def same_actions(rounds: int, bits: int, seed: int) -> Rounds:
    """Return rounds with the same thirty actions, of twenty features each, of 600: nothing is taught for free."""
    rng, actions, nonzero, common = stream(seed, "sparse"), 30, 20, 600
    weights = rng.standard_normal(common) / math.sqrt(nonzero)
    places = np.sort(rng.integers(common - nonzero, size=(actions, nonzero)), axis=1) + np.arange(nonzero)
    means = np.broadcast_to(weights[places].sum(axis=1), (rounds, actions))
    places = np.broadcast_to(places, (rounds, actions, nonzero))
    return _rounds(rng, places, np.ones(places.shape), means, bits, seed)


def _rounds(rng: np.random.Generator, places: Any, values: Any, means: Floats, bits: int, seed: int) -> Rounds:
    rewards = means + NOISE * rng.standard_normal((len(means), 1))
    known = np.arange(len(means)) + rng.geometric(1.0 / DELAY, len(means))
    return Rounds(places.astype(np.int32), values.astype(np.float32), rewards, known, bits, seed)


def table(given: Rounds, t: int) -> csr_array:
    """Return the features of a round as a sparse matrix, without zeros."""
    kept = given.values[t] != 0.0
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return csr_array((given.values[t][kept], given.places[t][kept], ends), (len(kept), 2**given.bits))


def ours(given: Rounds) -> Contestant:
    """Return a learner at its defaults."""
    learner = DecisionLearner(2**given.bits, silence=Unknown(), seed=given.seed)
    ids: dict[int, str] = {}
    tables = [table(given, t) for t in range(len(given.known))]  # as a caller has them; the others get theirs, too

    def decide(t: int) -> int:
        decision = learner.decide(tables[t])
        ids[t] = decision.id
        return decision.action

    def learn(t: int, action: int, reward: float) -> None:
        learner.feedback(ids.pop(t), reward)

    return Contestant("ours", decide, learn)


def diagonal(given: Rounds) -> Contestant:
    """Return Thompson sampling that takes weights as independent; it is told the noise and the width of the prior."""
    rng, size = stream(given.seed, "diagonal"), 2**given.bits
    mean, precision = np.zeros(size), np.full(size, float(given.places.shape[2]))

    def decide(t: int) -> int:
        places = given.places[t]
        drawn = mean[places] + rng.standard_normal(places.shape) / np.sqrt(precision[places])
        return int((given.values[t] * drawn).sum(axis=1).argmax())

    def learn(t: int, action: int, reward: float) -> None:
        places, x = given.places[t, action], given.values[t, action].astype(float)
        error, variance = reward - x @ mean[places], x**2 @ (1.0 / precision[places])
        mean[places] += x / precision[places] * error / (NOISE**2 + variance)
        precision[places] += x**2 / NOISE**2

    return Contestant("diagonal posterior", decide, learn)


def rewards(effort: Effort, tell: Tell) -> list[Measure]:
    """Compare what is earned on correlated features and on texts, run by run."""
    count, rounds = (20, 5_000) if effort.patient else (2, 500)
    problems = {
        "groups of five, 2^12": (groups_of_five, 12),
        "groups of five, 2^18": (groups_of_five, 18),
        "text, 2^18": (text, 18),
        "an arm has its own weights, 2^16": (arms, 16),
        "the same thirty actions, 2^16": (same_actions, 16),
    }
    found = []
    for name, (make, bits) in problems.items():
        tell(f"playing {name}")
        runs = [make(rounds, bits, seed) for seed in range(FIRST, FIRST + count)]
        earned: dict[str, Floats | str] = {}
        for each in (ours, diagonal):
            pairs = [sparse_rounds.play(run, each(run)) for run in runs]
            earned[each.__name__] = np.array([one for one, _ in pairs])
        earned |= _others(runs, effort, tell)
        mine = earned.pop("ours")
        assert not isinstance(mine, str)
        best, chance = (np.array([f(run.rewards) for run in runs]) for f in (_best, _chance))
        note = f"{rounds} rounds, geometric delay of mean {DELAY}, {count} runs"
        note += f"; chance {chance.mean():.0f}, best {best.mean():.0f}"
        found.append(_mean(f"{name}: reward", mine, note))
        for other, theirs in earned.items():
            if isinstance(theirs, str):
                found.append(unmeasured(f"{name}: {other}", theirs))
            else:
                more = mine - theirs
                found.append(
                    Measure(f"{name}: ours less {other}", (float(more.mean()),), "", at_least(0.0),
                            f"± {_error(more):.3g} (two standard errors, run by run); {other} {theirs.mean():.0f}")
                )  # fmt: skip
    return found


def _best(rewards: Floats) -> float:
    return float(rewards.max(axis=1).sum())


def _chance(rewards: Floats) -> float:
    return float(rewards.mean(axis=1).sum())


def _mean(name: str, values: Floats, note: str) -> Measure:
    return Measure(
        name, (float(values.mean()),), "", None, f"mean ± {_error(values):.3g} (two standard errors); {note}"
    )


def _error(values: Floats) -> float:
    return 2.0 * float(values.std(ddof=1)) / math.sqrt(len(values))


def _others(runs: Sequence[Rounds], effort: Effort, tell: Tell) -> dict[str, Floats | str]:
    return {
        name: each if isinstance(each, str) else np.array(each["earned"])
        for name, each in ask(runs, effort, tell).items()
    }


def ask(runs: Sequence[Rounds], effort: Effort, tell: Tell) -> dict[str, Mapping[str, list[float]] | str]:
    """Let the other packages play the runs; return what they earned and how long it took, or why one did not play."""
    found: dict[str, Mapping[str, list[float]] | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rounds.npz"
        arrays: dict[str, Any] = {name: np.stack([getattr(run, name) for run in runs]) for name in sparse_rounds.ARRAYS}
        np.savez(data, **arrays, bits=runs[0].bits)
        for name, script in OTHERS.items():
            peer = replace(peers()[name], script=SCRIPTS / script)
            try:
                prepare(peer, effort, tell, cache_folder())
                tell(f"letting {name} play the same rounds")
                found |= {f"{name} {what}": each for what, each in run_script(peer, cache_folder(), data).items()}
            except PeerError as error:
                found[name] = str(error)
    return found


def costs(effort: Effort, tell: Tell) -> list[Measure]:
    """Time decide and feedback of 32 draws with probabilities, for more and more features; and the memory."""
    rounds = 100_000 if effort.patient else 3_000
    times, found = dict[int, float](), []
    for bits in (14, 16, 18, 20):
        tell(f"timing rounds of 2^{bits} features")
        used, seconds = _memory(), 0.0
        learner = DecisionLearner(2**bits, silence=Unknown())
        weights = stream(0, "weights").standard_normal(2**bits) / math.sqrt(NONZERO)
        waiting: list[tuple[str, float]] = []
        for part in range(rounds // 1_000):
            rng = stream(part, "rounds")
            places = np.sort(rng.integers(2**bits - NONZERO, size=(1_000, ACTIONS, NONZERO)), axis=2) + np.arange(
                NONZERO
            )
            given = _rounds(rng, places, np.ones(places.shape), weights[places].sum(axis=2), bits, 0)
            tables = [table(given, t) for t in range(1_000)]
            began = time.process_time()
            for t in range(1_000):
                decision = learner.decide(tables[t])
                waiting.append((decision.id, given.rewards[t, decision.action]))
                if len(waiting) > DELAY:
                    learner.feedback(*waiting.pop(0))
            seconds += time.process_time() - began
        times[bits] = 1e6 * seconds / rounds
        posterior = learner._engine.state.posterior
        assert isinstance(posterior, SparsePosterior)
        figures = posterior.summary()
        predicted = settings.sparse_bytes(int(figures["features"]), 32, int(figures["rows"]), NONZERO)
        note = (
            f"{rounds} rounds, {ACTIONS} actions of {NONZERO} features; residual {figures['residual']:.2g}, "
            f"{figures['features']} features learned: {predicted / 1e6:.0f} MB by the formula, "
            f"{posterior.size / 1e6:.0f} MB saved, the process grew by {(_memory() - used) / 1e6:.0f} MB with its log"
        )
        found.append(
            Measure(
                f"decide and feedback, 2^{bits} features",
                (times[bits],),
                "µs",
                at_most(150) if bits == 18 else None,
                note,
            )
        )
    ratio = max(times.values()) / min(times.values())
    found.append(Measure("the most over the least of these", (ratio,), "×", at_most(1.3)))
    return [*found, *_race(effort, tell, rounds)]


def _race(effort: Effort, tell: Tell, rounds: int) -> list[Measure]:
    """Time the others at the same features, a tenth of the rounds."""
    given = groups_of_five(rounds // 10, 18, 0)
    _, seconds = sparse_rounds.play(given, ours(given))
    found = [Measure("a round of groups of five, 2^18", (1e6 * seconds,), "µs", None, "with its rewards late")]
    for name, each in ask([given], effort, tell).items():
        if isinstance(each, str):
            found.append(unmeasured(f"a round of {name}", each))
        else:
            theirs, told = each["seconds"][0], f"{1e6 * each['seconds'][0]:.0f} µs, the text of features included"
            found.append(Measure(f"{name} over ours, the same rounds", (theirs / seconds,), "×", at_least(1.0), told))
    return found


def _memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Exact:
    """Thompson sampling with the covariance of all weights, told the noise and the width of the prior."""

    def __init__(self, size: int, seed: int) -> None:
        self.mean, self.covariance = np.zeros(size), np.eye(size) / NONZERO
        self.rng = stream(seed, "exact")

    def scores(self, given: Rounds, t: int, draws: int) -> Floats:
        """Return draws of the scores, shape (actions, draws)."""
        x = table(given, t).toarray().astype(float)
        values, vectors = np.linalg.eigh(x @ self.covariance @ x.T)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        scores: Floats = (x @ self.mean)[:, None] + root @ self.rng.standard_normal((len(x), draws))
        return scores

    def learn(self, places: Any, x: Any, reward: float) -> None:
        """Bring in a row, by Sherman and Morrison."""
        along = self.covariance[:, places] @ x
        spread = NOISE**2 + x @ along[places]
        self.mean += along * (reward - x @ self.mean[places]) / spread
        self.covariance -= np.outer(along, along) / spread


def exactness(effort: Effort, tell: Tell) -> list[Measure]:
    """Compare regret, time and probabilities with exact draws, at d = 1 024 correlated features."""
    count, rounds = (10, 3_000) if effort.patient else (2, 200)
    tell("comparing with exact draws")
    lost: dict[str, list[float]] = {"ours": [], "exact": []}
    times: dict[str, list[float]] = {"ours": [], "exact": []}
    for seed in range(count):
        given = groups_of_five(rounds, 10, seed)
        learner = Exact(1024, seed)

        def learn(t: int, action: int, reward: float, given: Rounds = given, learner: Exact = learner) -> None:
            learner.learn(given.places[t, action], given.values[t, action].astype(float), reward)

        exact = Contestant("exact", lambda t, g=given, e=learner: int(e.scores(g, t, 1)[:, 0].argmax()), learn)  # type: ignore[misc]
        for each in (ours(given), exact):
            earned, seconds = sparse_rounds.play(given, each)
            lost[each.name].append(_best(given.rewards) - earned)
            times[each.name].append(seconds)
    mine, theirs = np.array(lost["ours"]), np.array(lost["exact"])
    more, error = mine - theirs, _error(mine - theirs)
    note = (
        f"{rounds} rounds, {count} runs; ours {mine.mean():.0f}, exact draws {theirs.mean():.0f}; two standard errors"
    )
    found = [
        Measure("d = 1 024: regret above that of exact draws", (float(more.mean()),), "", at_most(error),
                f"{note} {error:.3g}"),
        Measure("d = 1 024: the time of exact draws, rank-one updates, over ours",
                (float(np.median(times["exact"]) / np.median(times["ours"])),), "×", None),
    ]  # fmt: skip
    return [*found, _dense_time(effort, float(np.median(times["ours"]))), *_variation(effort)]


def _dense_time(effort: Effort, seconds: float) -> Measure:
    """Time the dense posterior of a learner of so many features, which such a learner would use if it were exact."""
    rounds, before = 150 if effort.patient else 10, settings.__dict__["DENSE"]
    given = groups_of_five(rounds, 10, 0)
    try:
        settings.__dict__["DENSE"] = 1024
        learner = DecisionLearner(1024, silence=Unknown())
    finally:
        settings.__dict__["DENSE"] = before
    tables = [table(given, t).toarray().astype(float) for t in range(rounds)]
    began = time.process_time()
    for t in range(rounds):
        decision = learner.decide(tables[t])
        learner.feedback(decision.id, float(given.rewards[t, decision.action]))
    dense = (time.process_time() - began) / rounds
    note = f"{1e3 * dense:.1f} ms a round, without the delay; ours {1e6 * seconds:.0f} µs"
    return Measure("d = 1 024: the time of the dense posterior over ours", (dense / seconds,), "×", at_least(50), note)


def _variation(effort: Effort) -> list[Measure]:
    """Compare on the same rows how often each action is the best: of members, and of 20 000 exact draws."""
    rounds = 1_500 if effort.patient else 100
    given = groups_of_five(rounds, 10, 0)
    exact = Exact(1024, 0)
    members = {
        (draws, settled): SparsePosterior(1024, draws=draws, noise=NOISE, ridge=NONZERO, seed=draws)
        for draws in (32, 1024)
        for settled in (False, True)
    }
    apart: dict[tuple[int, bool], list[float]] = {key: [] for key in members}
    noise: list[float] = []
    for t in range(rounds):
        places, x, reward = given.places[t, 0], given.values[t, 0], float(given.rewards[t, 0])
        exact.learn(places, x.astype(float), reward)
        for each in members.values():
            each.learn(0, Row(digest(str(t)), t, 0, places, x), reward)
        if t % 100 == 99:
            for (_, settled), each in members.items():
                if settled:
                    each.settle(0.02, 200)
            for u in range(t - 20, t):
                ends = NONZERO * np.arange(ACTIONS + 1)
                offer = SparseOffer(
                    ends[:-1], ends[1:], given.places[u].ravel(), given.values[u].ravel(), np.zeros(ACTIONS, np.int64)
                )  # fmt: skip
                drawn = exact.scores(given, u, 20_000).argmax(axis=0)
                likely = np.bincount(drawn, minlength=ACTIONS) / 20_000
                for key, each in members.items():
                    best = each.scores(offer).argmax(axis=0)
                    found_likely = np.bincount(best, minlength=ACTIONS) / best.size
                    apart[key].append(0.5 * float(np.abs(found_likely - likely).sum()))
                noise.append(0.5 * float(np.abs(np.bincount(drawn[:1024], minlength=ACTIONS) / 1024 - likely).sum()))
    found = []
    for (draws, settled), values in apart.items():
        swept = "after sweeps down to a residual of 0.02" if settled else "as they come"
        bar = at_most(0.03) if draws == 1024 else None
        note = (
            f"mean over {len(values)} decisions; 1 024 exact draws have {np.mean(noise):.3f}" if draws == 1024 else ""
        )
        found.append(
            Measure(
                f"probabilities of {draws} members, {swept}: total variation from exact",
                (float(np.mean(values)),),
                "",
                bar,
                note,
            )
        )
    return found


def undoing(effort: Effort, tell: Tell) -> list[Measure]:
    """Correct and cancel at random, sweep, and compare with a posterior that never saw what was taken back."""
    histories = 1_000 if effort.patient else 20
    tell("taking back")
    worst, sweeps = [], []
    for seed in range(histories):
        rng = stream(seed, "undo")
        size, rows = 300, int(rng.integers(10, 80))
        some = [
            Row(digest(str(i)), i, 0, np.sort(rng.choice(size, 8, replace=False)).astype(np.int32),
                rng.standard_normal(8).astype(np.float32))
            for i in range(rows)
        ]  # fmt: skip
        truth = {i: float(rng.standard_normal()) for i in range(rows)}
        seen, never = (SparsePosterior(size, noise=0.5, ridge=1.0, seed=1) for _ in range(2))
        first = {i: float(10.0 * rng.standard_normal()) if rng.random() < 0.3 else truth[i] for i in truth}
        gone = {i for i in truth if rng.random() < 0.3}
        for i in truth:
            seen.learn(0, some[i], first[i])
            back = int(rng.integers(i + 1))
            if back in truth and first[back] != truth[back] and rng.random() < 0.5:
                seen.correct(0, some[back], first[back], truth[back])
                first[back] = truth[back]
        for i in truth:
            if i in gone:
                seen.unlearn(0, some[i], first[i])
            elif first[i] != truth[i]:
                seen.correct(0, some[i], first[i], truth[i])
        for i in truth:
            if i not in gone:
                never.learn(0, some[i], truth[i])
        sweeps.append(seen.settle(2e-5))
        never.settle(2e-5)
        places = np.arange(size)
        offer = SparseOffer(
            places, places + 1, places.astype(np.int32), np.ones(size, np.float32), np.zeros(size, np.int64)
        )
        one, other = seen.scores(offer), never.scores(offer)
        worst.append(float((np.abs(one - other).max(axis=1) / other.std(axis=1)).max()))
    note = f"{histories} histories, all weights in all members; sweeps until the residual is 2e-5: "
    note += f"{np.median(sweeps):.0f}, at most {max(sweeps)}"
    return [
        Measure(
            "undo: the largest difference, in posterior standard deviations", (max(worst),), "", at_most(1e-3), note
        )
    ]
