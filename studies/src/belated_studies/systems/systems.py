"""All systems side by side: what their sources say, what was measured, and how long an episode takes."""

from __future__ import annotations

from belated.agents import BOLD, QPMD, Settings
from belated.runner import Experiment
from belated_studies.cells_and_curves import regret_cell
from belated_studies.paper.published import SYSTEMS, System
from belated_studies.reports.document import Section, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.systems.comparisons import Timed, searched, time_agents
from belated_studies.systems.testbeds import Size, adversaries, bandit, experiment, mdp_agents, synthetic
from belated_studies.winners import tuned

MDP, BANDIT, ADVERSARIAL = "testbed-mdp", "testbed-bandit", "testbed-adversarial"
TESTBEDS = {MDP: "synthetic MDP", BANDIT: "linear bandit", ADVERSARIAL: "adversarial MDP"}

#: The experiment and the agent that measure each system of the paper's table.
MEASURED = {
    "Howson et al. (2023a)": (BANDIT, "ofu"),
    "Howson et al. (2023b)": (MDP, "tabular-ucbvi"),
    "Yang et al. (2023)": (MDP, "multi-batch"),
    "Lancewicki et al. (2022)": (ADVERSARIAL, "oppo"),
    "Delayed-PSVI": (MDP, "psvi"),
    "Delayed-LPSVI": (MDP, "lpsvi"),
    "Delayed-PSLB": (BANDIT, "pslb"),
}
#: Systems that the paper's table does not have.
FURTHER = (
    (System("Delayed-UCBVI", "linear MDPs", "UCB", "–", "Sherman–Morrison widths, O(SAd)"), MDP, "ucbvi"),
    (System("LSVI-PHE (2021), delayed", "linear MDPs", "PS", "–", "conjugate gradients"), MDP, "phe"),
    (System("DAPO (2023)", "adversarial MDPs", "policy optimisation", "–", "O(H S² A)"), ADVERSARIAL, "dapo"),
    (System("Delayed-PSLB, Langevin", "linear bandits", "PS", "–", "O(N d²)"), BANDIT, "pslb-langevin"),
    (System("QPM-D around PSLB", "bandits", "that of the base", "–", "a queue per action"), BANDIT, "qpm-d"),
    (System("BOLD around PSLB", "any", "that of the base", "–", "a base per round in flight"), BANDIT, "bold"),
)
COLUMNS = ("System", "Setting", "Exploration", "Regret bound", "Computation", "Testbed", "Measured regret")


def around_pslb() -> dict[str, Settings]:
    """Return the meta-algorithms around Delayed-PSLB."""
    base = tuned("linear-bandit")["pslb"]
    return {"qpm-d": QPMD(base=base), "bold": BOLD(base=base)}


def experiments(size: Size) -> list[Experiment]:
    """Return one experiment a testbed."""
    return [
        experiment(MDP, size, synthetic(), mdp_agents(size)),
        experiment(BANDIT, size, bandit(10), {**tuned("linear-bandit"), **around_pslb()}, slow=True),
        experiment(ADVERSARIAL, size, adversaries()["switching"], tuned("adversarial"), slow=True),
    ]


TIMES = Measurement[Size](name="systems-times", kind=Timed, measure=lambda size: time_agents(experiments(size)))


def section(played: Played[Size]) -> Section:
    """Return the table of all systems, and their settings."""
    size = played.size
    times = {(timed.experiment, timed.agent): timed.cell for timed in played.measured[TIMES.name]}
    table = Table(
        id="systems-table",
        title="Every system, on a testbed of its kind",
        caption=(
            f"Bounds up to constants and logarithms as the paper prints them. Measured: cumulative regret after "
            f"{size.episodes} episodes under Poisson delays with mean 50, {size.seeds} seeds ({size.slow_seeds} for "
            "bandits and adversarial MDPs), 95 % intervals; on the synthetic linear MDP with 20 actions, a linear "
            "bandit with d = 10 and 100 actions, or an adversarial MDP whose rewards switch. Compare regret only "
            "within a testbed. Time: of a whole episode in the runner's loop, one core, median and range of repeats."
        ),
        columns=[*COLUMNS, "µs per episode"],
        rows=[
            [*system, TESTBEDS[name], regret_cell(played.results[name], agent=agent), times[name, agent]]
            for system, name, agent in (*((each, *MEASURED[each.name]) for each in SYSTEMS), *FURTHER)
        ],
    )
    paragraph = (
        "All agents but two were tuned on their testbed, on other seeds and with the same budget; tabular UCBVI and "
        "the multi-batch reduction were not tuned on this testbed."
    )
    tables = [table, searched(played, "systems-settings", *TESTBEDS)]
    return Section(id="systems", title="All systems", paragraphs=[paragraph], tables=tables)


ARTEFACT = Artefact(id="systems", order=1, section=section, experiments=experiments, measurements=[TIMES])
