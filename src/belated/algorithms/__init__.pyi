from .agent import CompiledSettings, Learner, Settings
from .bold import BOLD
from .dapo import DelayedDAPO
from .epsilon_greedy import EpsilonGreedy
from .fixed_policy import FixedPolicy
from .greedy import Greedy
from .lpsvi import DelayedLPSVI
from .multi_batch import MultiBatch
from .ofu import DelayedOFU
from .oppo import DelayedOPPO
from .otf import OTFLinTS, OTFLinUCB
from .phe import DelayedPHE
from .pslb import DelayedPSLB
from .psvi import DelayedPSVI
from .qpmd import QPMD
from .random_policy import RandomPolicy
from .rare_switching import RareSwitching
from .registry import ALGORITHMS, algorithm_from_dict
from .saving import load_agent, save_agent
from .tabular_ucbvi import TabularUCBVI
from .ucbvi import DelayedUCBVI

__all__ = [
    "ALGORITHMS",
    "BOLD",
    "QPMD",
    "CompiledSettings",
    "DelayedDAPO",
    "DelayedLPSVI",
    "DelayedOFU",
    "DelayedOPPO",
    "DelayedPHE",
    "DelayedPSLB",
    "DelayedPSVI",
    "DelayedUCBVI",
    "EpsilonGreedy",
    "FixedPolicy",
    "Greedy",
    "Learner",
    "MultiBatch",
    "OTFLinTS",
    "OTFLinUCB",
    "RandomPolicy",
    "RareSwitching",
    "Settings",
    "TabularUCBVI",
    "algorithm_from_dict",
    "load_agent",
    "save_agent",
]
