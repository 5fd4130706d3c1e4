"""The numbers that the paper prints, as data: nothing here is measured by this library.

Kuang, Yin, Wang, Wang and Ma, "Posterior Sampling with Delayed Feedback for Reinforcement Learning with Linear
Function Approximation", NeurIPS 2023.
"""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A printed number and the ± behind it, where there is one."""

    value: float
    spread: float | None = None


#: The optimal return of the synthetic linear MDP.
OPTIMAL_RETURN = 11.96

DELAYS = ("multinomial", "poisson", "pareto")
#: |S||A| of Tables 3 and 4.
SIZES = (20, 40, 100, 200)

#: Table 2 (`tab:exp_linMDP_delay`): average return upon convergence, |A| = 20, by agent and delay.
RETURN_BY_DELAY: dict[str, dict[str, Published]] = {
    agent: {delay: Published(*cell) for delay, cell in zip(DELAYS, cells, strict=True)}
    for agent, cells in {
        "psvi": [(11.53, 0.76), (11.48, 0.81), (11.53, 0.74)],
        "lpsvi": [(11.56, 0.48), (11.37, 0.48), (10.98, 0.40)],
        "ucbvi": [(10.61, 0.76), (10.54, 0.81), (7.20, 0.38)],
    }.items()
}

#: Table 3 (`tab:exp_linMDP_sigma_episode`): episodes to the highest expected return, by agent and |S||A|.
EPISODES_BY_SIZE: dict[str, dict[int, Published]] = {
    agent: {size: Published(cell) for size, cell in zip(SIZES, cells, strict=True)}
    for agent, cells in {
        "psvi-0.3": [1418, 1290, 1669, 2633],
        "psvi-0.2": [531, 1114, 1323, 826],
        "psvi-0.1": [391, 571, 650, 709],
        "lpsvi": [293, 246, 517, 566],
        "ucbvi": [3205, 2713, 3351, 3694],
    }.items()
}

#: Table 4 (`tab:exp_linMDP_sigma`): average return upon convergence, by agent and |S||A|.
RETURN_BY_SIZE: dict[str, dict[int, Published]] = {
    agent: {size: Published(*cell) for size, cell in zip(SIZES, cells, strict=True)}
    for agent, cells in {
        "psvi-0.3": [(11.23, 1.00), (11.07, 1.05), (10.93, 1.11), (10.80, 1.13)],
        "psvi-0.2": [(11.39, 0.91), (11.28, 0.94), (11.16, 1.02), (11.11, 1.03)],
        "psvi-0.1": [(11.57, 0.74), (11.48, 0.81), (11.39, 0.86), (11.33, 0.92)],
        "lpsvi": [(11.31, 0.46), (11.37, 0.48), (11.57, 0.48), (11.57, 0.78)],
        "ucbvi": [(10.98, 1.78), (10.54, 0.81), (9.67, 0.54), (10.01, 0.16)],
    }.items()
}


class System(NamedTuple):
    """A row of Table 1 (`tab:summary`)."""

    name: str
    setting: str
    exploration: str
    bound: str
    computation: str


#: Table 1: regret bounds under stochastic delay.
SYSTEMS: tuple[System, ...] = (
    System("Howson et al. (2023a)", "linear bandits", "UCB", "d√T + d^{3/2} E[τ]", "confidence set optimisation"),
    System("Howson et al. (2023b)", "tabular MDPs", "UCB", "√(SAH³T) + S²AH³ E[τ]", "active update"),
    System("Yang et al. (2023)", "linear MDPs", "UCB", "√(d³H³T) + dH² E[τ]", "multi-batch reduction"),
    System(
        "Lancewicki et al. (2022)",
        "adversarial MDPs",
        "UCB",
        "H²S√(AK) + H^{3/2}√(S Σ τ_k)",
        "confidence set optimisation",
    ),
    System("Delayed-PSVI", "linear MDPs", "PS", "√(d³H³T) + d²H² E[τ]", "O((d³ + Md)HK)"),
    System("Delayed-LPSVI", "linear MDPs", "PS", "√(d³H³T) + d²H² E[τ]", "O((N + d)MHK)"),
    System("Delayed-PSLB", "linear bandits", "PS", "√(d³T) + d² E[τ]", "O((N + d)MK)"),
)

#: The last two rows of Table 1: what no algorithm of its kind can fall below, without delay.
LOWER_BOUNDS: tuple[System, ...] = (
    System("UCB lower bound, He et al. (2023)", "linear MDPs", "UCB", "Ω(dH√T)", "–"),
    System("PS lower bound, Hamidi and Bayati (2020)", "linear bandits", "PS", "Ω(√(d³T))", "–"),
)
