"""Written by tools/exports.py: which name comes from where."""

from ._auto_psvi import Ablation as Ablation
from ._auto_psvi import AutoPSVI as AutoPSVI
from ._base import CompiledSettings as CompiledSettings
from ._base import Learner as Learner
from ._base import Settings as Settings
from ._baselines import lmc_lsvi as lmc_lsvi
from ._baselines import lsvi_phe as lsvi_phe
from ._baselines import lsvi_ucb as lsvi_ucb
from ._baselines import rlsvi as rlsvi
from ._bold import BOLD as BOLD
from ._by_age import LearnByAge as LearnByAge
from ._dapo import DelayedDAPO as DelayedDAPO
from ._epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from ._fixed_policy import FixedPolicy as FixedPolicy
from ._greedy import Greedy as Greedy
from ._lpsvi import DelayedLPSVI as DelayedLPSVI
from ._multi_batch import MultiBatch as MultiBatch
from ._ofu import DelayedOFU as DelayedOFU
from ._oppo import DelayedOPPO as DelayedOPPO
from ._otf import OTFLinTS as OTFLinTS
from ._otf import OTFLinUCB as OTFLinUCB
from ._phe import DelayedPHE as DelayedPHE
from ._pslb import DelayedPSLB as DelayedPSLB
from ._psrl import DelayedPSRL as DelayedPSRL
from ._psvi import DelayedPSVI as DelayedPSVI
from ._q_learning import DelayedQLearning as DelayedQLearning
from ._qpmd import QPMD as QPMD
from ._random_policy import RandomPolicy as RandomPolicy
from ._rare_switching import RareSwitching as RareSwitching
from ._registry import AGENTS as AGENTS
from ._registry import agent_from_dict as agent_from_dict
from ._saving import load_agent as load_agent
from ._saving import save_agent as save_agent
from ._tabular_ucbvi import TabularUCBVI as TabularUCBVI
from ._ucbvi import DelayedUCBVI as DelayedUCBVI
from ._weighted_psvi import VarianceWeightedPSVI as VarianceWeightedPSVI

__all__ = [
    "AGENTS",
    "BOLD",
    "QPMD",
    "Ablation",
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
    "LearnByAge",
    "Learner",
    "MultiBatch",
    "OTFLinTS",
    "OTFLinUCB",
    "RandomPolicy",
    "RareSwitching",
    "Settings",
    "TabularUCBVI",
    "VarianceWeightedPSVI",
    "agent_from_dict",
    "lmc_lsvi",
    "load_agent",
    "lsvi_phe",
    "lsvi_ucb",
    "rlsvi",
    "save_agent",
]
