"""What a model learns at its defaults: tables played as bandits, rewards late and partly missing, and a drift.

Other packages play the very same rounds, so that what is compared is the difference of each run.
"""

from __future__ import annotations

import importlib
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import MemoryStore, Model, ModelSettings
from belated.environments._classification import DATASETS
from belated.types import Floats, Ints
from belated_studies.peer_environments import Peer, PeerError, cache_folder, run_script
from benchmarks.measure import Measure, at_least, unmeasured
from benchmarks.peer_scripts import tables
from benchmarks.peer_scripts.tables import Contestant, Run
from benchmarks.peers import SCRIPTS, peers, prepare
from benchmarks.problems import Effort

ROUNDS, DELAY, MISSING, LAST = 3_000, 200, 0.2, 300
#: What the better of VW's squarecb and bayesianbandits, at their defaults, had right of 3 000 when once tried: a second
#: yardstick, since those were other runs, and have no error.
BARS = {"wine": 2_880, "breast-cancer": 2_876, "digits": 2_062}
#: Half-life in decisions where preferences change, and what should be right of the last 300 after a change halfway.
HALF_LIFE, AFTER_DRIFT = 300, 0.65
#: The scripts of those who play the same rounds.
OTHERS = {"vowpalwabbit": "learn_vowpalwabbit.py", "bayesianbandits": "learn_bayesianbandits.py"}

Tell = Callable[[str], None]


def learning(effort: Effort, tell: Tell) -> list[Measure]:
    """Count right answers at the defaults, and after a change of preferences halfway."""
    count = 20 if effort.patient else 3
    note = f"{ROUNDS} rounds, geometric delay of mean {DELAY}, {MISSING:.0%} of the rewards never come, {count} runs"
    found = []
    for name, least in BARS.items():
        tell(f"playing {name}")
        runs = [run(*load(name), seed) for seed in range(count)]
        right = play(runs).sum(axis=1)
        told = f"{note}; the target is what others had in other runs"
        found.append(_mean(f"{name}: right answers at the defaults", right, least, told, effort))
        for other, answers in _others(runs, effort, tell).items():
            found += _beside(name, right, other, answers if isinstance(answers, str) else answers.sum(axis=1), effort)
    for name in BARS:
        what, end = f"{name}, other classes halfway", f"share of the last {LAST} of {note}"
        tell(f"playing {what}")
        kept, faded = ([run(*load(name), seed, True, halves) for seed in range(count)] for halves in (0, HALF_LIFE))
        right = _ends(play(faded))
        found.append(_mean(f"{what}: nothing forgotten", _ends(play(kept)), None, end, effort))
        found.append(_mean(f"{what}: half-life of {HALF_LIFE} decisions", right, AFTER_DRIFT, end, effort))
        for other, answers in _others(faded, effort, tell).items():
            found += _beside(what, right, other, answers if isinstance(answers, str) else _ends(answers), effort)
    return found


def _ends(right: Floats) -> Floats:
    """Return the share of the last answers that were right, of each run."""
    shares: Floats = right[:, -LAST:].mean(axis=1)
    return shares


def _mean(name: str, values: Floats, bar: float | None, note: str, effort: Effort) -> Measure:
    target = None if bar is None or not effort.patient else at_least(bar)
    told = f"mean ± {_error(values):.3g} (two standard errors); {note}"
    return Measure(name, (float(values.mean()),), "", target, told)


def _error(values: Floats) -> float:
    """Return two standard errors of the mean."""
    return 2.0 * float(values.std(ddof=1)) / math.sqrt(len(values))


def _beside(name: str, ours: Floats, other: str, theirs: Floats | str, effort: Effort) -> list[Measure]:
    """Return what another has, and by how much ours is above it, run by run; or why there is no answer."""
    if isinstance(theirs, str):
        return [unmeasured(f"{name}: {other}", theirs)]
    above = ours - theirs
    bar, told = -float(f"{_error(above):.3g}"), "of the differences run by run; the target is no loss beyond the error"
    return [
        _mean(f"{name}: {other}", theirs, None, "the same rounds", effort),
        _mean(f"{name}: ours less {other}", above, bar, told, effort),
    ]


def _others(runs: Sequence[Run], effort: Effort, tell: Tell, home: Path | None = None) -> dict[str, Floats | str]:
    """Let the other packages play the runs; return what was right, shape (runs, rounds), or why one did not play."""
    found: dict[str, Floats | str] = {}
    for name, script in OTHERS.items():
        peer = replace(peers()[name], script=SCRIPTS / script)
        try:
            prepare(peer, effort, tell, home or cache_folder())
            tell(f"letting {name} play the same rounds")
            answers = ask(peer, home or cache_folder(), runs)
            found |= {f"{name} {what}": right for what, right in answers.items()}
        except PeerError as error:
            found[name] = str(error)
    return found


def ask(peer: Peer, home: Path, runs: Sequence[Run]) -> dict[str, Floats]:
    """Let `peer` play the runs, in its environment, and return for each way to use it which answers were right."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        arrays: dict[str, Any] = {name: np.stack([getattr(each, name) for each in runs]) for name in tables.ARRAYS}
        np.savez(data, **arrays, actions=runs[0].actions, half_life=runs[0].half_life)
        printed = run_script(peer, home, data)
    wanted = arrays["answers"].shape
    if not isinstance(printed, Mapping) or any(np.shape(right) != wanted for right in printed.values()):
        raise PeerError(f"{peer.script.name} printed no answers")
    return {what: np.array(right, np.float64) for what, right in printed.items()}


def load(name: str) -> tuple[Floats, Ints]:
    """Return the standardised columns and the classes of a table that comes with scikit-learn."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    rows, classes = getattr(datasets, DATASETS[name])(return_X_y=True)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), classes


def run(rows: Floats, classes: Ints, seed: int, drift: bool = False, half_life: float = 0) -> Run:
    """Return rounds of rows drawn at random; `drift`: all classes move on by one halfway."""
    rng, count = stream(seed, "bench"), int(classes.max()) + 1
    shown, delays = rng.integers(len(rows), size=ROUNDS), rng.geometric(1.0 / DELAY, ROUNDS)
    lost, rounds = rng.random(ROUNDS) < MISSING, np.arange(ROUNDS)
    answers = (classes[shown] + (drift & (rounds >= ROUNDS // 2))) % count
    constant = np.ones((ROUNDS, 1))
    table = np.concatenate([constant, rows[shown]], axis=1)
    return Run(table, answers, np.where(lost, -1, rounds + delays), count, half_life, seed)


def play(runs: Sequence[Run]) -> Floats:
    """Let ours play the runs, and return which answers were right, shape (runs, rounds)."""
    with threadpool_limits(1):
        return np.array([tables.play(ours(each), each) for each in runs], np.float64)


def ours(given: Run) -> Contestant:
    """Return a model at its defaults, but for forgetting; it adds the constant by itself."""
    names = [f"x{i}" for i in range(1, given.rows.shape[1])]
    actions = [str(i) for i in range(given.actions)]
    table = {"actions": actions, "features": names, "silence": {"kind": "unknown"}, "seed": given.seed}
    if given.half_life:
        table["forgetting"] = {"decisions": given.half_life}
    now, ids = [0.0], list[str]()
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])

    def decide(t: int) -> int:
        now[0] = float(t)
        made = model.decide(dict(zip(names, given.rows[t, 1:].tolist(), strict=True)))
        ids.append(made.id)
        return int(made.action)

    def learn(t: int, action: int, reward: float) -> None:
        model.feedback(ids[t], reward)

    return Contestant("a model at its defaults", decide, learn)
