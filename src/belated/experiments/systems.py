"""Every system on common testbeds, declared: bandits, conversions, chains, adversaries, delays without a mean.

Nothing is computed here. Settings that matter were searched for on other seeds, and bandits on another instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from belated.algorithms import (
    BOLD,
    QPMD,
    DelayedOFU,
    DelayedPHE,
    MultiBatch,
    RandomPolicy,
    RareSwitching,
    Settings,
    TabularUCBVI,
)
from belated.delays import Constant, DelayByReward, DelayLaw, Geometric, Lossy, OutcomeLaw, Pareto, Poisson
from belated.environments import (
    AdversarialMDP,
    Chain,
    ClassificationBandit,
    FiniteMDP,
    LinearBandit,
    SyntheticLinearMDP,
)
from belated.experiments.settings import tuned
from belated.runner import Experiment
from belated.validate import choice

DIMENSIONS = (5, 10, 20)
MEAN_DELAYS = (0, 100, 250, 500, 1000)
CHAINS = (5, 10, 20)
CHAIN_DELAYS = (0, 100, 200, 300, 500)
LAZY = (1, 4, 16)
"""α of lazy updating."""
WINDOW = 100
"""Rounds after which a conversion no longer counts."""
ADVERSARIES = ("switching", "drifting", "trap")
PERIOD = 1000
NOISE = 0.5

#: What can be asked for by name, and the experiments each is made of.
ARTEFACTS: dict[str, tuple[str, ...]] = {
    "systems": ("testbed-mdp", "testbed-bandit", "testbed-adversarial"),
    "bandits": ("bandits", "bandits-meta"),
    "conversions": ("conversions-never", "conversions-waiting"),
    "contexts": ("contexts-logistic", "contexts-replay"),
    "chains": ("chains",),
    "arbitrary": ("arbitrary",),
    "switching": ("switching",),
    "adversarial": ("adversarial", "adversarial-known"),
}


@dataclass(frozen=True)
class Size:
    """How much is played."""

    name: str
    seeds: int
    rounds: int
    """Rounds of a bandit."""
    episodes: int
    """Episodes of an MDP."""
    slow_seeds: int
    """Seeds where most agents are asked in Python."""


FULL = Size("full", seeds=30, rounds=20_000, episodes=5000, slow_seeds=10)
QUICK = Size("quick", seeds=6, rounds=4000, episodes=1000, slow_seeds=3)

NEVER = Lossy(Constant(0), missing=1.0)
#: A conversion is reported later, and the lack of one never.
SILENT = DelayByReward(zero=NEVER, positive=Geometric(mean=WINDOW / 2))
#: The same, but the lack of one is told when the window is over.
TOLD = DelayByReward(zero=Constant(WINDOW), positive=Geometric(mean=WINDOW / 2))

ARBITRARY: dict[str, DelayLaw] = {
    "poisson-50": Poisson(50),
    "pareto-1": Pareto(1.0, 50.0),
    "pareto-0.5": Pareto(0.5, 50.0),
    "half-lost": Lossy(Poisson(50), missing=0.5),
}


def late(mean: int) -> DelayLaw:
    """Return geometric delays, the exponential's counterpart in whole numbers."""
    return Geometric(mean=mean) if mean else Constant(0)


def bandit(dimension: int, seed: int = 0) -> LinearBandit:
    """Return the linear bandit of the study: 100 actions in the unit ball, Gaussian noise."""
    return LinearBandit(dimension=dimension, actions=100, noise=NOISE, seed=seed)


def conversions(seed: int = 0) -> LinearBandit:
    """Return the bandit whose rewards are conversions."""
    return LinearBandit(dimension=10, actions=20, reward="conversion", seed=seed)


def testbed() -> SyntheticLinearMDP:
    """Return the MDP on which every episodic system is measured."""
    return SyntheticLinearMDP(actions=20)


def mdp_agents(episodes: int) -> dict[str, Settings]:
    """Return the episodic systems with settings found on the synthetic MDP, those of others untuned."""
    best = tuned("synthetic")
    psvi = best["psvi-0.1"]
    return {
        "psvi": psvi,
        "lpsvi": best["lpsvi"],
        "phe": DelayedPHE(scale=psvi.scale, noise=psvi.noise, ridge=psvi.ridge, draws=psvi.draws),  # type: ignore[attr-defined]
        "ucbvi": best["ucbvi"],
        "tabular-ucbvi": TabularUCBVI(bonus_form="bernstein", bonus_scale=0.002, episodes=episodes),
        "multi-batch": MultiBatch(base=best["ucbvi"]),
    }


def chain_agents() -> dict[str, Settings]:
    """Return active and lazy updating of the same tabular base, and posterior sampling."""
    best = tuned("chain")
    base = best["tabular-ucbvi"]
    lazy = {
        f"lazy-{alpha}": replace(base, updating="lazy", growth=float(alpha))  # type: ignore[call-arg]
        for alpha in LAZY
    }
    return {"active": base, **lazy, "psvi": best["psvi"]}


def experiments(size: Size, names: Iterable[str] = ARTEFACTS) -> dict[str, Experiment]:
    """Return the experiments that the sections called `names` need, each once.

    >>> sorted(experiments(QUICK, ["chains"]))
    ['chains']
    """
    wanted = {experiment for name in names for experiment in ARTEFACTS[choice("the section", name, ARTEFACTS)]}
    return {name: experiment for name, experiment in _declared(size).items() if name in wanted}


def _declared(size: Size) -> dict[str, Experiment]:
    every, slow = max(1, size.rounds // 200), size.slow_seeds
    declared: dict[str, Experiment] = {}

    def declare(
        name: str,
        environments: FiniteMDP | Mapping[str, FiniteMDP],
        agents: Mapping[str, Settings],
        delays: Mapping[str, DelayLaw | OutcomeLaw],
        *,
        episodes: int,
        record_every: int = 1,
        seeds: int = size.seeds,
    ) -> None:
        declared[name] = Experiment(
            name=name,
            environments=environments,
            agents=agents,
            delays=delays,
            episodes=episodes,
            seeds=seeds,
            record_every=record_every,
        )

    linear, waiting, silent = tuned("linear-bandit"), tuned("waiting"), tuned("conversions")
    adversarial = tuned("adversarial")
    poisson: dict[str, DelayLaw | OutcomeLaw] = {"poisson-50": Poisson(50)}

    declare("testbed-mdp", testbed(), mdp_agents(size.episodes), poisson, episodes=size.episodes)
    meta: dict[str, Settings] = {"qpm-d": QPMD(base=linear["pslb"]), "bold": BOLD(base=linear["pslb"])}
    declare("testbed-bandit", bandit(10), {**linear, **meta}, poisson, episodes=size.episodes, seeds=slow)
    hostile = {name: AdversarialMDP(adversary=name, period=PERIOD) for name in ADVERSARIES}
    known = {name: AdversarialMDP(adversary=name, period=PERIOD, known_dynamics=True) for name in ADVERSARIES}
    online = {name: adversarial[name] for name in ("oppo", "dapo")}
    others = {name: agent for name, agent in adversarial.items() if name not in online}
    declare("testbed-adversarial", hostile["switching"], adversarial, poisson, episodes=size.episodes, seeds=slow)

    delays: dict[str, DelayLaw | OutcomeLaw] = {f"mean-{mean}": late(mean) for mean in MEAN_DELAYS}
    worlds = {f"d-{d}": bandit(d) for d in DIMENSIONS}
    declare("bandits", worlds, linear, delays, episodes=size.rounds, record_every=every)
    some = {name: delays[name] for name in ("mean-0", "mean-100", "mean-500")}
    around_pslb = {"pslb": linear["pslb"], **meta}
    declare("bandits-meta", {"d-10": bandit(10)}, around_pslb, some, episodes=size.rounds // 4, seeds=slow)

    clicks = {"conversions": conversions()}
    declare(
        "conversions-never", clicks, {**silent, **waiting}, {"never": SILENT}, episodes=size.rounds, record_every=every
    )
    declare("conversions-waiting", clicks, waiting, {"told": TOLD}, episodes=size.rounds, record_every=every)

    logistic = LinearBandit(dimension=10, actions=20, sets="random", contexts=20, reward="logistic")
    ofu = linear["ofu"]
    assert isinstance(ofu, DelayedOFU)
    glm = {
        "ofu-logistic": replace(ofu, link="logistic"),
        "ofu": ofu,
        "pslb": linear["pslb"],
        "random": RandomPolicy(),
    }
    hundred: dict[str, DelayLaw | OutcomeLaw] = {"mean-100": late(100)}
    declare("contexts-logistic", {"logistic": logistic}, glm, hundred, episodes=size.rounds, record_every=every)
    tables = {name: ClassificationBandit(dataset=name) for name in ("digits", "wine", "breast-cancer")}
    replayed = {"pslb": linear["pslb"], "ofu": ofu, "random": RandomPolicy()}
    declare("contexts-replay", tables, replayed, hundred, episodes=size.episodes)

    corridors = {f"chain-{length}": Chain(length) for length in CHAINS}
    waits: dict[str, DelayLaw | OutcomeLaw] = {
        f"mean-{mean}": Poisson(mean) if mean else Constant(0) for mean in CHAIN_DELAYS
    }
    declare("chains", corridors, chain_agents(), waits, episodes=size.episodes)

    best = mdp_agents(size.episodes)
    around = {
        name: agent
        for label in ("psvi", "lpsvi", "ucbvi")
        for name, agent in (
            (label, best[label]),
            (f"multi-batch-{label}", MultiBatch(base=best[label])),
            (f"multi-batch-{label}-all", MultiBatch(base=best[label], drop_stragglers=False)),
        )
    }
    declare("arbitrary", testbed(), {**around, "random": RandomPolicy()}, ARBITRARY, episodes=size.episodes, seeds=slow)

    rare = {
        name: agent
        for label in ("psvi", "lpsvi", "ucbvi", "tabular-ucbvi")
        for name, agent in (
            (label, best[label]),
            *((f"{label}-det-{growth}", RareSwitching(base=best[label], growth=growth)) for growth in (1.1, 1.5, 2.0)),
            *((f"{label}-every-{n}", RareSwitching(base=best[label], growth=None, every=n)) for n in (10, 50)),
        )
    }
    declare("switching", testbed(), rare, poisson, episodes=size.episodes)

    fooled = {**online, **others, "random": RandomPolicy()}
    declare("adversarial", hostile, fooled, poisson, episodes=size.episodes, seeds=slow)
    declare("adversarial-known", known, online, poisson, episodes=size.episodes, seeds=slow)
    return declared
