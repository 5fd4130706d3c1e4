"""Written by tools/exports.py: which name comes from where."""

from .agent import CompiledSettings as CompiledSettings
from .agent import Learner as Learner
from .agent import Settings as Settings
from .auto_psvi import AutoPSVI as AutoPSVI
from .bold import BOLD as BOLD
from .dapo import DelayedDAPO as DelayedDAPO
from .epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from .fixed_policy import FixedPolicy as FixedPolicy
from .greedy import Greedy as Greedy
from .lpsvi import DelayedLPSVI as DelayedLPSVI
from .multi_batch import MultiBatch as MultiBatch
from .ofu import DelayedOFU as DelayedOFU
from .oppo import DelayedOPPO as DelayedOPPO
from .otf import OTFLinTS as OTFLinTS
from .otf import OTFLinUCB as OTFLinUCB
from .phe import DelayedPHE as DelayedPHE
from .pslb import DelayedPSLB as DelayedPSLB
from .psrl import DelayedPSRL as DelayedPSRL
from .psvi import DelayedPSVI as DelayedPSVI
from .q_learning import DelayedQLearning as DelayedQLearning
from .qpmd import QPMD as QPMD
from .random_policy import RandomPolicy as RandomPolicy
from .rare_switching import RareSwitching as RareSwitching
from .registry import ALGORITHMS as ALGORITHMS
from .registry import algorithm_from_dict as algorithm_from_dict
from .saving import load_agent as load_agent
from .saving import save_agent as save_agent
from .tabular_ucbvi import TabularUCBVI as TabularUCBVI
from .ucbvi import DelayedUCBVI as DelayedUCBVI

__all__ = [
    "ALGORITHMS",
    "BOLD",
    "QPMD",
    "AutoPSVI",
    "CompiledSettings",
    "DelayedDAPO",
    "DelayedLPSVI",
    "DelayedOFU",
    "DelayedOPPO",
    "DelayedPHE",
    "DelayedPSLB",
    "DelayedPSRL",
    "DelayedPSVI",
    "DelayedQLearning",
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
