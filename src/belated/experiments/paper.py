"""The paper's experiments, declared: which agents, environments, delays, seeds and episodes.

Nothing is computed here. Each artefact of the paper (a figure or a table) names the experiments whose rows it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from belated.algorithms import MultiBatch, Settings, TabularUCBVI
from belated.delays import Constant, DelayLaw, Multinomial, Pareto, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.experiments.settings import literal_riverswim, literal_synthetic, three_agents, tuned
from belated.runner import Experiment
from belated.validate import choice

#: The three delays of the synthetic MDP. The paper's Pareto "scale 500" is read as the classical law's minimum.
DELAYS: dict[str, DelayLaw] = {
    "multinomial": Multinomial([10, 20, 30], [0.5, 0.3, 0.2]),
    "poisson": Poisson(50),
    "pareto": Pareto(1.0, 500.0),
}
LOMAX = Pareto(1.0, 500.0, kind="lomax")

#: |S||A| of Tables 3 and 4.
SIZES = (20, 40, 100, 200)

#: Mean delays at which the dependence on E[τ] is measured.
MEAN_DELAYS = (0, 10, 50, 100, 200, 500)

BLOCKS = ("literal", "tuned")

#: What can be asked for by name, and the experiments each is made of.
ARTEFACTS: dict[str, tuple[str, ...]] = {
    "table-1": ("table-2-tuned", "systems", "bandit"),
    "figure-1": ("figure-1-literal", "figure-1-tuned"),
    "figure-2": (),
    "table-2": ("table-2-literal", "table-2-tuned", "table-2-lomax"),
    "table-3": ("sizes-literal", "sizes-tuned"),
    "table-4": ("sizes-literal", "sizes-tuned"),
    "figure-3": ("figure-3-literal", "figure-3-tuned"),
    "computation": (),
    "delay": ("delay",),
    "details": ("details", "details-pareto", "details-langevin", "details-riverswim"),
}


@dataclass(frozen=True)
class Size:
    """How much is played: the paper's scale, or a quick look."""

    name: str
    episodes: int
    seeds: int
    riverswim_seeds: int


FULL = Size("full", episodes=5000, seeds=10, riverswim_seeds=5)
QUICK = Size("quick", episodes=1500, seeds=6, riverswim_seeds=5)


def synthetic(pairs: int) -> SyntheticLinearMDP:
    """Return the synthetic MDP with |S||A| = `pairs`; it has two states."""
    return SyntheticLinearMDP(actions=pairs // 2)


def langevin_readings(lpsvi: Settings) -> dict[str, Settings]:
    """Return the variants of printed Langevin hyper-parameters that the paper leaves open: where a chain starts, σ.

    Chains are drawn from their exact N-step law, which is faster and the same.
    """
    return {
        f"{start}-{noise}": replace(lpsvi, warm_start=start, noise=noise, sampler="collapsed")  # type: ignore[call-arg]
        for start in ("episode", "step", "cold")
        for noise in (1.0, 0.1)
    }


def synthetic_from_state_1(pairs: int) -> FiniteMDP:
    """Return the synthetic MDP started in its other state; the paper does not say where it starts."""
    world = synthetic(pairs)
    return FiniteMDP(world.transitions, world.rewards, features=world.features, start=1, name=f"{world.label}-from-1")


def experiments(size: Size, names: Iterable[str] = ARTEFACTS) -> dict[str, Experiment]:
    """Return the experiments that the artefacts called `names` need, each once.

    >>> sorted(experiments(QUICK, ["table-3", "table-4"]))
    ['sizes-literal', 'sizes-tuned']
    """
    wanted = {experiment for name in names for experiment in ARTEFACTS[choice("the artefact", name, ARTEFACTS)]}
    return {name: experiment for name, experiment in _all(size).items() if name in wanted}


def _distinct(agents: dict[str, Settings]) -> dict[str, Settings]:
    """Return `agents` without a later one that has the settings of an earlier one."""
    first = {settings: label for label, settings in reversed(agents.items())}
    return {label: settings for label, settings in agents.items() if first[settings] == label}


def _all(size: Size) -> dict[str, Experiment]:
    literal, best = literal_synthetic(), tuned("synthetic")
    trio = {"literal": three_agents(literal), "tuned": three_agents(best)}
    five = {"literal": literal, "tuned": {name: best[name] for name in literal}}
    plain = {"lpsvi-plain": best["lpsvi-plain"]}
    river = {"literal": literal_riverswim(), "tuned": _distinct(tuned("riverswim"))}
    declared: list[Experiment] = []

    def declare(
        name: str,
        environments: FiniteMDP | dict[str, FiniteMDP],
        agents: dict[str, Settings],
        delays: DelayLaw | dict[str, DelayLaw],
        seeds: int = size.seeds,
    ) -> None:
        declared.append(
            Experiment(
                name=name,
                environments=environments,
                agents=agents,
                delays=delays,
                episodes=size.episodes,
                seeds=seeds,
            )
        )

    for block in BLOCKS:
        agents = _distinct({**trio[block], **(plain if block == "tuned" else {})})
        declare(f"figure-1-{block}", synthetic(100), agents, DELAYS)
        declare(f"table-2-{block}", synthetic(40), agents, DELAYS)
        declare(
            f"sizes-{block}", {f"size-{n}": synthetic(n) for n in SIZES}, five[block], {"poisson": DELAYS["poisson"]}
        )
        declare(f"figure-3-{block}", RiverSwim(), river[block], {"poisson": Poisson(5)}, size.riverswim_seeds)
    declare("table-2-lomax", synthetic(40), trio["tuned"], {"lomax": LOMAX})
    declare(
        "delay",
        synthetic(40),
        trio["tuned"],
        {f"mean-{mean}": Poisson(mean) if mean else Constant(0) for mean in MEAN_DELAYS},
    )
    # Systems of Table 1 that were not part of the search: plausible settings, not tuned ones.
    systems: dict[str, Settings] = {
        "tabular-ucbvi": TabularUCBVI(bonus_form="bernstein", bonus_scale=0.002, episodes=size.episodes),
        "multi-batch": MultiBatch(base=best["ucbvi"]),
    }
    declare("systems", synthetic(40), systems, {"poisson": DELAYS["poisson"]})
    # A linear bandit is an MDP with one state and one step; Delayed-PSLB is Delayed-PSVI there.
    bandit = RandomLinearMDP(states=1, actions=50, dimension=10, horizon=1, bernoulli=True)
    declare("bandit", bandit, {"pslb": best["psvi-0.1"]}, {"poisson": DELAYS["poisson"]})
    firsts = {f"{name}-first": replace(agent, ties="first") for name, agent in trio["literal"].items()}  # type: ignore[call-arg]
    worlds = {
        "base": synthetic(40),
        "normalised": SyntheticLinearMDP(actions=20, normalise=True),
        "from-1": synthetic_from_state_1(40),
    }
    poisson = {"poisson": DELAYS["poisson"]}
    declare("details", worlds, {**trio["literal"], **firsts}, poisson)
    declare("details-pareto", synthetic(40), trio["literal"], {"pareto": DELAYS["pareto"], "lomax": LOMAX})
    declare("details-langevin", synthetic(40), langevin_readings(literal["lpsvi"]), poisson)
    declare("details-riverswim", RiverSwim(), langevin_readings(literal_riverswim()["lpsvi"]), {"poisson": Poisson(5)})
    return {experiment.name: experiment for experiment in declared}
