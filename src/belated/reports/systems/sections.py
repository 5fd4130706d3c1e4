"""The sections of the study of systems: each turns rows into tables, charts and sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from belated.evaluation import Estimate, difference, mean_interval, upon_convergence
from belated.experiments import systems as declared
from belated.reports.document import Cell, Chart, Section, Series, Table
from belated.reports.systems.material import (
    Material,
    against,
    cell,
    final_regret,
    name_of,
    regret_cell,
    regret_curve,
    settings_table,
)
from belated.runner import Results
from belated.studies.paper.published import SYSTEMS
from belated.types import Floats

Row = list[str | Cell]

#: The rows of the table of systems: what the source says, and which run measures it.
MEASURED = {
    "Howson et al. (2023a)": ("testbed-bandit", "ofu"),
    "Howson et al. (2023b)": ("testbed-mdp", "tabular-ucbvi"),
    "Yang et al. (2023)": ("testbed-mdp", "multi-batch"),
    "Lancewicki et al. (2022)": ("testbed-adversarial", "oppo"),
    "Delayed-PSVI": ("testbed-mdp", "psvi"),
    "Delayed-LPSVI": ("testbed-mdp", "lpsvi"),
    "Delayed-PSLB": ("testbed-bandit", "pslb"),
}
#: Systems that the paper's table does not have.
FURTHER: tuple[tuple[str, str, str, str, str, str, str], ...] = (
    ("Delayed-UCBVI", "linear MDPs", "UCB", "", "Sherman–Morrison widths, O(SAd)", "testbed-mdp", "ucbvi"),
    ("LSVI-PHE (2021), delayed", "linear MDPs", "PS", "", "conjugate gradients", "testbed-mdp", "phe"),
    ("DAPO (2023)", "adversarial MDPs", "policy optimisation", "", "O(H S² A)", "testbed-adversarial", "dapo"),
    ("Delayed-PSLB, Langevin", "linear bandits", "PS", "", "O(N d²)", "testbed-bandit", "pslb-langevin"),
    ("QPM-D around PSLB", "bandits", "that of the base", "", "a queue per action", "testbed-bandit", "qpm-d"),
    ("BOLD around PSLB", "any", "that of the base", "", "a base per round under way", "testbed-bandit", "bold"),
)
TESTBEDS = {
    "testbed-mdp": "synthetic MDP",
    "testbed-bandit": "linear bandit",
    "testbed-adversarial": "adversarial MDP",
}


def systems(material: Material) -> Section:
    """All systems side by side."""
    rows: list[Row] = []

    def add(name: str, setting: str, exploration: str, bound: str, cost: str, testbed: str, agent: str) -> None:
        pace = material.paces[f"{testbed}/{agent}"]
        rows.append(
            [
                name,
                setting,
                exploration,
                bound or "–",
                cost,
                TESTBEDS[testbed],
                regret_cell(material.results[testbed], agent=agent),
                Cell(value=pace.median, low=pace.low, high=pace.high, digits=1),
            ]
        )

    for system in SYSTEMS:
        add(*system, *MEASURED[system.name])
    for row in FURTHER:
        add(*row)
    size = material.size
    table = Table(
        id="systems-table",
        title="Every system, on a testbed of its kind",
        caption=(
            f"Bounds up to constants and logarithms as the paper prints them. Measured: cumulative regret after "
            f"{size.episodes} episodes under Poisson delays with mean 50, {size.seeds} seeds ({size.slow_seeds} for "
            "bandits and adversarial MDPs), 95 % intervals; on the synthetic linear MDP with 20 actions, a linear "
            "bandit with d = 10 and 100 actions, or an adversarial MDP whose rewards switch. Regret compares only "
            "within a testbed. Time: of a whole episode in the runner's loop, one core, median and range of repeats."
        ),
        columns=[
            "System",
            "Setting",
            "Exploration",
            "Regret bound",
            "Computation",
            "Testbed",
            "Measured regret",
            "µs per episode",
        ],
        rows=rows,
    )
    return Section(
        id="systems",
        title="All systems",
        paragraphs=[
            "Tabular UCBVI and the multi-batch reduction have settings that were not searched for on this testbed; all "
            "others were, with equal effort, on other seeds."
        ],
        tables=[table, settings_table(material, "systems-settings", list(TESTBEDS))],
    )


def line(means: list[float], regret: Floats) -> tuple[Estimate, Estimate, float]:
    """Fit regret = a + b·E[τ] per seed; return a, b and the worst distance of a mean from the line, as a share."""
    x = np.array(means)
    fits = np.array([np.polyfit(x, row, 1) for row in regret])
    curve = regret.mean(axis=0)
    fitted = np.polyval(np.polyfit(x, curve, 1), x)
    return (
        mean_interval(fits[:, 1]),
        mean_interval(fits[:, 0]),
        float(np.abs(curve - fitted).max() / max(np.ptp(curve), 1e-12)),
    )


def _by_delay(
    results: Results, means: tuple[int, ...], agents: list[str], environment: str
) -> tuple[list[Series], list[Row]]:
    """Return a curve of final regret against the mean delay for each agent, and the line fitted to it."""
    series: list[Series] = []
    rows: list[Row] = []
    for agent in agents:
        columns = [final_regret(results, agent=agent, delay=f"mean-{mean}", environment=environment) for mean in means]
        series.append(against(name_of(agent), means, columns))
        intercept, slope, deviation = line([float(mean) for mean in means], np.stack(columns, axis=1))
        rows.append(
            [
                environment,
                name_of(agent),
                cell(intercept),
                cell(slope, digits=3),
                Cell(value=100 * deviation, digits=0),
            ]
        )
    return series, rows


LINE_COLUMNS = [
    "Environment",
    "Agent",
    "a: regret without delay",
    "b: regret per unit of mean delay",
    "Deviation from the line, per cent",
]


def bandits(material: Material) -> Section:
    """Linear bandits over dimensions and delays."""
    results, meta = material.results["bandits"], material.results["bandits-meta"]
    charts, rows = [], []
    for d in declared.DIMENSIONS:
        series, lines = _by_delay(results, declared.MEAN_DELAYS, results.agents, f"d-{d}")
        rows += lines
        charts.append(
            Chart(
                id=f"bandits-d{d}",
                title=f"Linear bandit, d = {d}: regret against the mean delay",
                caption=(
                    f"100 actions in the unit ball, Gaussian noise {declared.NOISE}, geometric delays, "
                    f"{material.size.rounds} rounds; mean and 95 % interval over {material.size.seeds} seeds."
                ),
                x_label="mean delay E[τ] in rounds",
                y_label="cumulative regret",
                series=series,
            )
        )
    compared: list[Row] = [
        [
            name_of(agent),
            *(regret_cell(meta, agent=agent, delay=delay) for delay in meta.delays),
        ]
        for agent in meta.agents
    ]
    return Section(
        id="bandits",
        title="Linear bandits",
        paragraphs=[
            "The bounds say that delay adds a term linear in E[τ]: with the same base, the curves should be straight.",
            "QPM-D and BOLD turn a bandit that knows nothing of delay into one that can live with it. Delayed-PSLB "
            "uses what has arrived directly.",
        ],
        charts=charts,
        tables=[
            Table(
                id="bandits-lines",
                title="Is the penalty additive and linear in E[τ]?",
                caption="Regret = a + b·E[τ], fitted per seed; deviation as a share of the curve's range.",
                columns=LINE_COLUMNS,
                rows=rows,
            ),
            Table(
                id="bandits-meta",
                title="Meta-algorithms around the same base, d = 10",
                caption=(
                    f"Cumulative regret after {material.size.rounds // 4} rounds, {material.size.slow_seeds} seeds, "
                    "95 % intervals."
                ),
                columns=["Agent", "no delay", "E[τ] = 100", "E[τ] = 500"],
                rows=compared,
            ),
            settings_table(material, "bandits-settings", ["bandits", "bandits-meta"]),
        ],
    )


def conversions(material: Material) -> Section:
    """What silence means: conversions that are reported late, and zeros that never are."""
    never, told = material.results["conversions-never"], material.results["conversions-waiting"]
    rows: list[Row] = []
    for agent in never.agents:
        waits = agent in told.agents
        rows.append(
            [
                name_of(agent),
                regret_cell(never, agent=agent),
                regret_cell(told, agent=agent) if waits else Cell(value=None, note="needs no telling"),
            ]
        )
    series = [regret_curve(never, agent) for agent in never.agents]
    series += [
        Series(**{**vars(one), "name": f"{one.name}, told after the window", "dashed": True})
        for one in (regret_curve(told, agent) for agent in told.agents)
    ]
    chart = Chart(
        id="conversions-chart",
        title="Conversions: a zero is never reported",
        caption=(
            f"20 actions, d = 10; a conversion is reported after a geometric delay of mean {declared.WINDOW // 2}, the "
            f"lack of one never, or (dashed) when the window of {declared.WINDOW} rounds is over."
        ),
        x_label="round",
        y_label="cumulative regret",
        series=series,
    )
    return Section(
        id="conversions",
        title="Conversions: what silence means",
        paragraphs=[
            "An agent that waits for feedback hears only of conversions where zeros are never reported: every action "
            "looks equally good to it. OTFLinUCB and OTFLinTS count every play as a zero until it converts, and allow "
            "for the bias of what is still to come."
        ],
        charts=[chart],
        tables=[
            Table(
                id="conversions-table",
                title="Cumulative regret",
                caption=f"{material.size.rounds} rounds, {material.size.seeds} seeds, 95 % intervals.",
                columns=["Agent", "zeros never reported", "zeros told after the window"],
                rows=rows,
            ),
            settings_table(material, "conversions-settings", ["conversions-never"]),
        ],
    )


def contexts(material: Material) -> Section:
    """Logistic rewards with random action sets, and recorded tables."""
    logistic, replay = material.results["contexts-logistic"], material.results["contexts-replay"]
    rows: list[Row] = [[name_of(agent), regret_cell(logistic, agent=agent)] for agent in logistic.agents]
    tables: list[Row] = [
        [
            name_of(agent),
            *(
                cell(upon_convergence(replay.array("value", agent=agent, environment=table)).estimate, digits=3)
                for table in replay.environments
            ),
        ]
        for agent in replay.agents
    ]
    return Section(
        id="contexts",
        title="Contexts: logistic rewards and recorded tables",
        tables=[
            Table(
                id="contexts-logistic",
                title="Logistic rewards, 20 random action sets",
                caption="Cumulative regret, geometric delays with mean 100, 95 % intervals over seeds.",
                columns=["Agent", "Cumulative regret"],
                rows=rows,
            ),
            Table(
                id="contexts-replay",
                title="Classification tables replayed as bandits",
                caption=(
                    f"Share of right answers over the last tenth of {material.size.episodes} rounds; the answer to a "
                    "row becomes known after a geometric delay with mean 100."
                ),
                columns=["Agent", *replay.environments],
                rows=tables,
            ),
        ],
    )


def chains(material: Material) -> Section:
    """Active and lazy updating on chains."""
    results = material.results["chains"]
    charts, rows, trend = [], [], []
    for length in declared.CHAINS:
        environment = f"chain-{length}"
        series, lines = _by_delay(results, declared.CHAIN_DELAYS, results.agents, environment)
        rows += lines
        charts.append(
            Chart(
                id=f"chains-{length}",
                title=f"Chain with H = S = {length}: regret against the mean delay",
                caption=(
                    f"Poisson delays, {material.size.episodes} episodes; mean and 95 % interval over "
                    f"{material.size.seeds} seeds."
                ),
                x_label="mean delay E[τ] in episodes",
                y_label="cumulative regret",
                series=series,
            )
        )
        trend += _lazy_rows(results, environment)
    return Section(
        id="chains",
        title="Chains: active against lazy updating",
        paragraphs=[
            "Howson et al. report that active updating is at least as good as lazy updating, that a larger α brings "
            "lazy updating nearer to it, and that the penalty of delay is additive. All agents but Delayed-PSVI are "
            "the same tabular UCBVI."
        ],
        charts=charts,
        tables=[
            Table(
                id="chains-lines",
                title="Is the penalty additive and linear in E[τ]?",
                caption="Regret = a + b·E[τ], fitted per seed; deviation as a share of the curve's range.",
                columns=LINE_COLUMNS,
                rows=rows,
            ),
            Table(
                id="chains-lazy",
                title="Regret of lazy updating over that of active updating",
                caption=(
                    f"Difference in cumulative regret at E[τ] = {declared.CHAIN_DELAYS[-2]}, paired by seed, with 95 % "
                    "intervals. Reproduced: no lazy rule has less regret beyond its interval. Refuted: one has."
                ),
                columns=["Environment", *(name_of(f"lazy-{alpha}") for alpha in declared.LAZY), "active ≥ lazy"],
                rows=trend,
            ),
            settings_table(material, "chains-settings", ["chains"]),
        ],
    )


def _lazy_rows(results: Results, environment: str) -> list[Row]:
    pick = {"environment": environment, "delay": f"mean-{declared.CHAIN_DELAYS[-2]}"}
    active = final_regret(results, agent="active", **pick)
    differences = [difference(final_regret(results, agent=f"lazy-{alpha}", **pick), active) for alpha in declared.LAZY]
    refuted = any(one.high < 0 for one in differences)
    return [[environment, *(cell(one, digits=1) for one in differences), "refuted" if refuted else "reproduced"]]


def arbitrary(material: Material) -> Section:
    """Delays without a mean, and feedback that is lost."""
    results = material.results["arbitrary"]
    optimum = float(results.array("optimal", agent="random", delay="poisson-50").mean())
    rows: list[Row] = [
        [
            _batch_name(agent),
            *(
                cell(upon_convergence(results.array("value", agent=agent, delay=delay)).estimate, digits=2)
                for delay in results.delays
            ),
        ]
        for agent in results.agents
    ]
    regrets: list[Row] = [
        [_batch_name(agent), *(regret_cell(results, agent=agent, delay=delay) for delay in results.delays)]
        for agent in results.agents
    ]
    shown = [
        agent for agent in results.agents if agent in ("psvi", "multi-batch-psvi", "multi-batch-psvi-all", "random")
    ]
    chart = Chart(
        id="arbitrary-chart",
        title="Delays without a mean (Pareto, shape 0.5)",
        caption="Cumulative regret on the synthetic MDP, mean and 95 % band over seeds.",
        x_label="episode",
        y_label="cumulative regret",
        series=[
            Series(**{**vars(regret_curve(results, agent, delay="pareto-0.5")), "name": _batch_name(agent)})
            for agent in shown
        ],
    )
    names = ["Poisson 50", "Pareto, shape 1", "Pareto, shape 0.5", "half of it lost"]
    return Section(
        id="arbitrary",
        title="Arbitrary delays: the multi-batch reduction",
        paragraphs=[
            "A Pareto law of shape 1 has the tail of a Cauchy law and no mean; shape 0.5 is heavier still. The "
            "reduction needs only that a share of feedback arrives in time. It keeps learning there; whether it does "
            "better than the agent it wraps is another question, and the tables answer it.",
        ],
        charts=[chart],
        tables=[
            Table(
                id="arbitrary-values",
                title="Value upon convergence",
                caption=f"Synthetic MDP, 20 actions; the optimum is {optimum:.2f}.",
                columns=["Agent", *names],
                rows=rows,
            ),
            Table(
                id="arbitrary-regret",
                title="Cumulative regret",
                caption=f"{material.size.episodes} episodes, {material.size.slow_seeds} seeds, 95 % intervals.",
                columns=["Agent", *names],
                rows=regrets,
            ),
        ],
    )


def _batch_name(agent: str) -> str:
    """Return how a wrapped agent is called."""
    if not agent.startswith("multi-batch-"):
        return name_of(agent)
    base = agent.removeprefix("multi-batch-")
    kept = base.endswith("-all")
    return f"multi-batch around {name_of(base.removesuffix('-all'))}{', stragglers kept' if kept else ''}"


def switching(material: Material) -> Section:
    """What rare planning costs in regret, and what it saves in time."""
    results = material.results["switching"]
    rows: list[Row] = []
    for agent in results.agents:
        base = next(one for one in ("tabular-ucbvi", "lpsvi", "psvi", "ucbvi") if agent.startswith(one))
        pace, whole = material.paces[f"switching/{agent}"], material.paces[f"switching/{base}"]
        rule = agent.removeprefix(base).lstrip("-").replace("det-", "det Ω grows by ").replace("every-", "every ")
        rows.append(
            [
                name_of(base),
                rule or "every episode",
                regret_cell(results, agent=agent),
                Cell(value=pace.median, low=pace.low, high=pace.high, digits=1),
                Cell(value=whole.median / pace.median, digits=1),
            ]
        )
    table = Table(
        id="switching-table",
        title="Rare planning",
        caption=(
            "Synthetic MDP, Poisson delays with mean 50; regret with 95 % intervals over seeds; time of a whole "
            "episode, feedback, play and evaluation included, one core. At this size planning is cheap; the saving "
            "grows with d and S."
        ),
        columns=["Agent", "A new policy", "Cumulative regret", "µs per episode", "Times faster"],
        rows=rows,
    )
    return Section(id="switching", title="Rare switching", tables=[table])


def adversarial(material: Material) -> Section:
    """Rewards that an adversary changes."""
    results, known = material.results["adversarial"], material.results["adversarial-known"]
    charts = [
        Chart(
            id=f"adversarial-{environment}",
            title=f"Adversarial MDP, {environment}: regret against the best fixed policy in hindsight",
            caption=(
                f"S = 5, A = 3, H = 5, Poisson delays with mean 50; mean and 95 % band over {material.size.slow_seeds} "
                "seeds. The comparator is exact for the last episode of the curve."
            ),
            x_label="episode",
            y_label="cumulative regret",
            series=[regret_curve(results, agent, environment=environment) for agent in results.agents],
        )
        for environment in results.environments
    ]
    rows: list[Row] = [
        [
            f"{name_of(agent)}{', dynamics known' if source is known else ''}",
            *(regret_cell(source, agent=agent, environment=environment) for environment in results.environments),
        ]
        for source in (results, known)
        for agent in source.agents
    ]
    return Section(
        id="adversarial",
        title="Adversarial costs",
        charts=charts,
        tables=[
            Table(
                id="adversarial-table",
                title="Cumulative regret against the best fixed policy in hindsight",
                caption=f"{material.size.episodes} episodes, {material.size.slow_seeds} seeds, 95 % intervals.",
                columns=["Agent", *results.environments],
                rows=rows,
            ),
            settings_table(material, "adversarial-settings", ["adversarial"]),
        ],
    )


BUILDERS: dict[str, Callable[[Material], Section]] = {
    "systems": systems,
    "bandits": bandits,
    "conversions": conversions,
    "contexts": contexts,
    "chains": chains,
    "arbitrary": arbitrary,
    "switching": switching,
    "adversarial": adversarial,
}
