"""Arbitrary delays: the multi-batch reduction where delays have no mean and where feedback is lost."""

from __future__ import annotations

from belated.algorithms import MultiBatch, RandomPolicy, Settings
from belated.delays import DelayLaw, Lossy, Pareto, Poisson
from belated.evaluation import difference
from belated.reports.document import Chart, Section, Table
from belated.runner import Experiment
from belated.studies.pieces import cell, converged, final_regret, name_of, regret_cell, regret_series
from belated.studies.study import Artefact, Played
from belated.studies.systems.pieces import mean_regret
from belated.studies.systems.testbeds import Size, mdp_agents, synthetic

LAWS: dict[str, DelayLaw] = {
    "poisson-50": Poisson(50),
    "pareto-1": Pareto(1.0, 50.0),
    "pareto-0.5": Pareto(0.5, 50.0),
    "half-lost": Lossy(Poisson(50), missing=0.5),
}
LAW_NAMES = {
    "poisson-50": "Poisson 50",
    "pareto-1": "Pareto, shape 1",
    "pareto-0.5": "Pareto, shape 0.5",
    "half-lost": "half of it lost",
}
NO_MEAN, LOST = "pareto-0.5", "half-lost"

#: The labels of the reduction around each base, without and with what arrives too late for its batch.
BATCHES = {base: f"multi-batch-{base}" for base in ("psvi", "lpsvi", "ucbvi")}
KEEPING = {base: f"multi-batch-{base}-all" for base in BATCHES}
NAMES = {
    **{label: name_of(label) for label in (*BATCHES, "random")},
    **{label: f"multi-batch around {name_of(base)}" for base, label in BATCHES.items()},
    **{label: f"multi-batch around {name_of(base)}, stragglers kept" for base, label in KEEPING.items()},
}


def agents(size: Size) -> dict[str, Settings]:
    """Return each base alone and with the reduction around it."""
    best = mdp_agents(size)
    around: dict[str, Settings] = {}
    for base in BATCHES:
        around[base] = best[base]
        around[BATCHES[base]] = MultiBatch(base=best[base])
        around[KEEPING[base]] = MultiBatch(base=best[base], drop_stragglers=False)
    return {**around, "random": RandomPolicy()}


def experiments(size: Size) -> list[Experiment]:
    """Return the synthetic MDP under all laws."""
    return [
        Experiment(
            name="arbitrary",
            environments=synthetic(),
            agents=agents(size),
            delays=LAWS,
            episodes=size.episodes,
            seeds=size.slow_seeds,
        )
    ]


def section(played: Played[Size]) -> Section:
    """Return values and regret under all laws."""
    results, size = played.results["arbitrary"], played.size
    optimum = float(results.array("optimal", agent="random", delay="poisson-50").mean())
    chart = Chart(
        id="arbitrary-chart",
        title="Delays without a mean (Pareto, shape 0.5)",
        caption="Cumulative regret on the synthetic MDP, mean and 95 % band over seeds.",
        x_label="episode",
        y_label="cumulative regret",
        series=[
            regret_series(results, agent, name=NAMES[agent], delay=NO_MEAN)
            for agent in ("psvi", BATCHES["psvi"], KEEPING["psvi"], "random")
        ],
    )
    values = Table(
        id="arbitrary-values",
        title="Value upon convergence",
        caption=f"Synthetic MDP, 20 actions; the optimum is {optimum:.2f}.",
        columns=["Agent", *LAW_NAMES.values()],
        rows=[
            [
                NAMES[agent],
                *(cell(converged(results, agent=agent, delay=law)) for law in LAWS),
            ]
            for agent in results.agents
        ],
    )
    regrets = Table(
        id="arbitrary-regret",
        title="Cumulative regret",
        caption=f"{size.episodes} episodes, {size.slow_seeds} seeds, 95 % intervals.",
        columns=["Agent", *LAW_NAMES.values()],
        rows=[
            [NAMES[agent], *(regret_cell(results, agent=agent, delay=law) for law in LAWS)] for agent in results.agents
        ],
    )
    return Section(
        id="arbitrary",
        title="Arbitrary delays: the multi-batch reduction",
        paragraphs=[
            "A Pareto law of shape 1 has the tail of a Cauchy law and no mean; shape 0.5 is heavier still. The "
            "reduction needs only that a share of feedback arrives in time. It keeps learning there; whether it does "
            "better than the agent it wraps is another question, and the tables answer it.",
        ],
        charts=[chart],
        tables=[values, regrets],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return where the reduction keeps learning, and whether it helps."""
    results, around = played.results["arbitrary"], [*BATCHES.values(), *KEEPING.values()]

    def learning(delay: str) -> int:
        random = final_regret(results, agent="random", delay=delay)
        gaps = [difference(random, final_regret(results, agent=agent, delay=delay)) for agent in around]
        return sum(gap.low > 0 for gap in gaps)

    better = sum(
        mean_regret(results, agent=label, delay=NO_MEAN) < mean_regret(results, agent=base, delay=NO_MEAN)
        for base, label in BATCHES.items()
    )
    return [
        f"Multi-batch agents keep learning under delays without a mean ({learning(NO_MEAN)} of {len(around)} better "
        f"than random) and when half of the feedback is lost ({learning(LOST)} of {len(around)}); around {better} of "
        f"{len(BATCHES)} bases the reduction has less regret than the base alone."
    ]


ARTEFACT = Artefact[Size](id="arbitrary", order=6, section=section, experiments=experiments, findings=findings)
