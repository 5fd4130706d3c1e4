"""One algorithm, one file, one shape."""

from belated.algorithms.agent import Learner, Settings
from belated.algorithms.epsilon_greedy import EpsilonGreedy
from belated.algorithms.fixed_policy import FixedPolicy
from belated.algorithms.greedy import Greedy
from belated.algorithms.lpsvi import DelayedLPSVI
from belated.algorithms.multi_batch import MultiBatch
from belated.algorithms.psvi import DelayedPSVI
from belated.algorithms.random_policy import RandomPolicy
from belated.algorithms.registry import ALGORITHMS, algorithm_from_dict
from belated.algorithms.saving import load_agent, save_agent
from belated.algorithms.tabular_ucbvi import TabularUCBVI
from belated.algorithms.ucbvi import DelayedUCBVI

__all__ = [
    "ALGORITHMS",
    "DelayedLPSVI",
    "DelayedPSVI",
    "DelayedUCBVI",
    "EpsilonGreedy",
    "FixedPolicy",
    "Greedy",
    "Learner",
    "MultiBatch",
    "RandomPolicy",
    "Settings",
    "TabularUCBVI",
    "algorithm_from_dict",
    "load_agent",
    "save_agent",
]
