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

#: Table 2 (`tab:exp_linMDP_delay`): average return upon convergence, |A| = 20, by agent and delay.
RETURN_BY_DELAY: dict[str, dict[str, Published]] = {
    "psvi": {
        "multinomial": Published(11.53, 0.76),
        "poisson": Published(11.48, 0.81),
        "pareto": Published(11.53, 0.74),
    },
    "lpsvi": {
        "multinomial": Published(11.56, 0.48),
        "poisson": Published(11.37, 0.48),
        "pareto": Published(10.98, 0.40),
    },
    "ucbvi": {
        "multinomial": Published(10.61, 0.76),
        "poisson": Published(10.54, 0.81),
        "pareto": Published(7.20, 0.38),
    },
}

#: Table 3 (`tab:exp_linMDP_sigma_episode`): episodes to the highest expected return, by agent and |S||A|.
EPISODES_BY_SIZE: dict[str, dict[int, Published]] = {
    "psvi-0.3": {20: Published(1418), 40: Published(1290), 100: Published(1669), 200: Published(2633)},
    "psvi-0.2": {20: Published(531), 40: Published(1114), 100: Published(1323), 200: Published(826)},
    "psvi-0.1": {20: Published(391), 40: Published(571), 100: Published(650), 200: Published(709)},
    "lpsvi": {20: Published(293), 40: Published(246), 100: Published(517), 200: Published(566)},
    "ucbvi": {20: Published(3205), 40: Published(2713), 100: Published(3351), 200: Published(3694)},
}

#: Table 4 (`tab:exp_linMDP_sigma`): average return upon convergence, by agent and |S||A|.
RETURN_BY_SIZE: dict[str, dict[int, Published]] = {
    "psvi-0.3": {
        20: Published(11.23, 1.00),
        40: Published(11.07, 1.05),
        100: Published(10.93, 1.11),
        200: Published(10.80, 1.13),
    },
    "psvi-0.2": {
        20: Published(11.39, 0.91),
        40: Published(11.28, 0.94),
        100: Published(11.16, 1.02),
        200: Published(11.11, 1.03),
    },
    "psvi-0.1": {
        20: Published(11.57, 0.74),
        40: Published(11.48, 0.81),
        100: Published(11.39, 0.86),
        200: Published(11.33, 0.92),
    },
    "lpsvi": {
        20: Published(11.31, 0.46),
        40: Published(11.37, 0.48),
        100: Published(11.57, 0.48),
        200: Published(11.57, 0.78),
    },
    "ucbvi": {
        20: Published(10.98, 1.78),
        40: Published(10.54, 0.81),
        100: Published(9.67, 0.54),
        200: Published(10.01, 0.16),
    },
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
