"""The agents of the paper's experiments: with its printed hyper-parameters (literal), and with tuned ones."""

from __future__ import annotations

from math import sqrt

from belated.agents import DelayedLPSVI, DelayedPSVI, DelayedUCBVI, Settings
from belated_studies.paper.setting import LITERAL
from belated_studies.reports.document import Block
from belated_studies.winners import tuned

#: The synthetic MDP has d = 10 and H = 20, so ν = √d·H.
PAPER_SCALE = sqrt(10) * 20

SIGMAS = (0.3, 0.2, 0.1)

#: The agents of Figure 1, Table 2 and RiverSwim.
TRIO = ("psvi", "lpsvi", "ucbvi")


def literal_synthetic() -> dict[str, Settings]:
    """Return the agents of the synthetic MDP as the paper prints their hyper-parameters.

    Which "previous sample" warm-starts a chain is left open. Read as the sample of the step above, the printed numbers
    come closest to the published ones in RiverSwim; the study of open details compares both readings.
    """
    psvi = {f"psvi-{sigma}": DelayedPSVI(draws=2, scale=PAPER_SCALE, noise=sigma) for sigma in SIGMAS}
    return {
        **psvi,
        "lpsvi": DelayedLPSVI(draws=2, steps=40, temperature=0.02, step_ratio=0.5, warm_start="step"),
        "ucbvi": DelayedUCBVI(bonus_ratio=0.1),
    }


def literal_riverswim() -> dict[str, Settings]:
    """Return the agents of RiverSwim as the paper prints them: γ = c_γ²·d·M·H² with c_γ = 0.005."""
    temperature = 0.005**2 * 10 * 2 * 20**2
    return {
        "psvi": DelayedPSVI(draws=2, scale=1.0, noise=1.13),
        "lpsvi": DelayedLPSVI(draws=2, steps=40, temperature=temperature, step_ratio=0.5, warm_start="step"),
        "ucbvi": DelayedUCBVI(bonus_ratio=0.04, bonus_form="growing"),
    }


def five(block: Block) -> dict[str, Settings]:
    """Return the agents of Tables 3 and 4: PSVI with three σ, LPSVI and UCBVI."""
    literal = literal_synthetic()
    return literal if block == LITERAL else {name: tuned("synthetic")[name] for name in literal}


def trio(block: Block) -> dict[str, Settings]:
    """Return PSVI with σ = 0.1, LPSVI and UCBVI."""
    agents = five(block)
    return {"psvi": agents["psvi-0.1"], "lpsvi": agents["lpsvi"], "ucbvi": agents["ucbvi"]}


def trio_and_plain(block: Block) -> dict[str, Settings]:
    """Return the agents of Table 2: `trio`, and of the tuned ones LPSVI with a plain chain as well."""
    plain = {} if block == LITERAL else {"lpsvi-plain": tuned("synthetic")["lpsvi-plain"]}
    return distinct({**trio(block), **plain})


def riverswim(block: Block) -> dict[str, Settings]:
    """Return the agents of RiverSwim."""
    return literal_riverswim() if block == LITERAL else distinct(tuned("riverswim"))


def distinct(agents: dict[str, Settings]) -> dict[str, Settings]:
    """Return `agents` without a later one that has the settings of an earlier one."""
    first = {settings: label for label, settings in reversed(agents.items())}
    return {label: settings for label, settings in agents.items() if first[settings] == label}
