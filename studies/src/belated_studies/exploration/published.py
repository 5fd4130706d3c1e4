"""What others have published, all without delay."""

from __future__ import annotations

SIZES = (25, 50, 75, 100)

#: Return on the N-chain after 10⁵ steps, 20 runs, by the authors of feel-good Thompson sampling (their plot script).
N_CHAIN: dict[str, tuple[float, float, float, float]] = {
    "FG-ULMCDQN": (10.0, 9.85, 9.80, 9.80),
    "LSVI-PHE": (9.86, 9.86, 9.72, 9.50),
    "FG-LMCDQN": (9.50, 8.75, 8.46, 8.07),
    "ULMCDQN": (9.63, 9.73, 7.90, 8.02),
    "Adam LMCDQN": (8.55, 7.31, 6.08, 6.04),
    "DQN": (9.40, 5.52, 5.19, 5.05),
    "Bootstrapped DQN": (9.70, 7.56, 6.36, 3.57),
    "NoisyNet": (6.51, 1.95, 0.98, 0.90),
}

THEIR_AGENTS = (
    "Their agents are neural networks, which know neither that there is a table of states nor the range of the rewards "
    "nor the horizon; AutoPSVI and the agents beside it know all three."
)

#: Regret of `AutoPSVI` as it was before it hurried and retried what it had left behind, by problem and delay: the mean
#: of seeds 0 to 9.
BEFORE: dict[tuple[str, str], float] = {
    ("nchain-25", "none"): 77.49,
    ("nchain-25", "poisson-50"): 1396,
    ("nchain-50", "none"): 120.7,
    ("nchain-50", "poisson-50"): 2242,
    ("nchain-75", "none"): 159.1,
    ("nchain-75", "poisson-50"): 2997,
    ("nchain-100", "none"): 192.7,
    ("nchain-100", "poisson-50"): 3692,
    ("deepsea-10", "poisson-10"): 69.17,
    ("deepsea-12", "poisson-10"): 83.84,
    ("deepsea-14", "poisson-10"): 97.01,
    ("deepsea-16", "poisson-10"): 116.3,
    ("deepsea-18", "poisson-10"): 129.5,
    ("deepsea-20", "poisson-10"): 140.1,
    ("paper-synthetic", "multinomial"): 217,
    ("paper-synthetic", "poisson"): 575,
    ("paper-synthetic", "pareto"): 5985,
    ("paper-riverswim", "poisson-5"): 91,
}

MOUNTAIN_CAR = "RL-Zoo: DQN −100.8 after 120,000 steps"
CART_POLE = "RL-Zoo: DQN 500 after 50,000 steps"
ACROBOT = "RL-Zoo: DQN −76.6, QR-DQN −69.1 after 100,000 steps"


def best_on_the_chain(size: int) -> str:
    """Return the best published number on the N-chain of `size`, and whose it is.

    >>> best_on_the_chain(100)
    'FG-ULMCDQN 9.8'
    """
    at = SIZES.index(size)
    agent = max(N_CHAIN, key=lambda name: N_CHAIN[name][at])
    return f"{agent} {N_CHAIN[agent][at]:g}"
