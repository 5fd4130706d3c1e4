"""The constants and bounds of the theorems (Kuang et al., 2023) as numbers.

Theorems 1 and 2 set λ = 1 and σ = 1 and assume features of norm at most 1, rewards in [0, 1] and delays that are
independent and sub-exponential. So does everything here. Where the paper lets a quantity grow with the
episode k, it is taken at k = K, its maximum.

`bounds` computes everything for one problem, the other functions one quantity each. `from_theory` of an algorithm
returns it with these settings.
"""

from belated.theory._constants import (
    FixedPoint,
    concentration,
    lpsvi_beta,
    lpsvi_concentration,
    psvi_beta,
    psvi_concentration,
    rounds,
    weight_bound,
)
from belated.theory._delay import (
    delay_bound,
    delay_term,
    delayed_error_bound,
    missing_bound,
    potential_bound,
)
from belated.theory._langevin import (
    ChainLength,
    chain_length,
    condition_bound,
    condition_number,
    step_size,
    temperature,
)
from belated.theory._regret import (
    RegretBound,
    bandit_concentration,
    bandit_regret_bound,
    lpsvi_regret_bound,
    psvi_regret_bound,
)
from belated.theory._settings import ConservativeSettingsWarning
from belated.theory._summary import Bounds, Row, bounds

__all__ = [
    "Bounds",
    "ChainLength",
    "ConservativeSettingsWarning",
    "FixedPoint",
    "RegretBound",
    "Row",
    "bandit_concentration",
    "bandit_regret_bound",
    "bounds",
    "chain_length",
    "concentration",
    "condition_bound",
    "condition_number",
    "delay_bound",
    "delay_term",
    "delayed_error_bound",
    "lpsvi_beta",
    "lpsvi_concentration",
    "lpsvi_regret_bound",
    "missing_bound",
    "potential_bound",
    "psvi_beta",
    "psvi_concentration",
    "psvi_regret_bound",
    "rounds",
    "step_size",
    "temperature",
    "weight_bound",
]
