"""Written by tools/exports.py: which name comes from where."""

from . import agents as agents
from . import client as client
from . import compiled as compiled
from . import decisions as decisions
from . import delays as delays
from . import environments as environments
from . import errors as errors
from . import evaluation as evaluation
from . import features as features
from . import gymnasium as gymnasium
from . import runner as runner
from . import service as service
from . import testing as testing
from . import theory as theory
from . import types as types
from .agents._auto_psvi import AutoPSVI as AutoPSVI
from .agents._bold import BOLD as BOLD
from .agents._by_age import LearnByAge as LearnByAge
from .agents._dapo import DelayedDAPO as DelayedDAPO
from .agents._epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from .agents._fixed_policy import FixedPolicy as FixedPolicy
from .agents._greedy import Greedy as Greedy
from .agents._lpsvi import DelayedLPSVI as DelayedLPSVI
from .agents._multi_batch import MultiBatch as MultiBatch
from .agents._ofu import DelayedOFU as DelayedOFU
from .agents._oppo import DelayedOPPO as DelayedOPPO
from .agents._otf import OTFLinTS as OTFLinTS
from .agents._otf import OTFLinUCB as OTFLinUCB
from .agents._phe import DelayedPHE as DelayedPHE
from .agents._pslb import DelayedPSLB as DelayedPSLB
from .agents._psrl import DelayedPSRL as DelayedPSRL
from .agents._psvi import DelayedPSVI as DelayedPSVI
from .agents._q_learning import DelayedQLearning as DelayedQLearning
from .agents._qpmd import QPMD as QPMD
from .agents._random_policy import RandomPolicy as RandomPolicy
from .agents._rare_switching import RareSwitching as RareSwitching
from .agents._registry import AGENTS as AGENTS
from .agents._saving import load_agent as load_agent
from .agents._saving import save_agent as save_agent
from .agents._tabular_ucbvi import TabularUCBVI as TabularUCBVI
from .agents._ucbvi import DelayedUCBVI as DelayedUCBVI
from .agents._weighted_psvi import VarianceWeightedPSVI as VarianceWeightedPSVI
from .delays._base import DelayDistribution as DelayDistribution
from .delays._base import IndependentDelays as IndependentDelays
from .delays._distributions import Constant as Constant
from .delays._distributions import Geometric as Geometric
from .delays._distributions import Lossy as Lossy
from .delays._distributions import Mixture as Mixture
from .delays._distributions import Multinomial as Multinomial
from .delays._distributions import NegativeBinomial as NegativeBinomial
from .delays._distributions import Pareto as Pareto
from .delays._distributions import Poisson as Poisson
from .delays._distributions import Uniform as Uniform
from .delays._outcome import DelayByAction as DelayByAction
from .delays._outcome import DelayByReward as DelayByReward
from .delays._queue import FeedbackQueue as FeedbackQueue
from .delays._recorded import Empirical as Empirical
from .delays._recorded import Fixed as Fixed
from .delays._time_varying import Backlog as Backlog
from .delays._time_varying import Bursts as Bursts
from .delays._time_varying import Drift as Drift
from .delays._time_varying import Outages as Outages
from .delays._time_varying import Periodic as Periodic
from .environments._adversarial import AdversarialMDP as AdversarialMDP
from .environments._bandit import Bandit as Bandit
from .environments._bandit import LinearBandit as LinearBandit
from .environments._chains import Chain as Chain
from .environments._chains import NChain as NChain
from .environments._chains import RiverSwim as RiverSwim
from .environments._classification import ClassificationBandit as ClassificationBandit
from .environments._deepsea import DeepSea as DeepSea
from .environments._finite import FiniteMDP as FiniteMDP
from .environments._funnel import ShopFunnel as ShopFunnel
from .environments._gym_environment import GymEnvironment as GymEnvironment
from .environments._linear import RandomLinearMDP as RandomLinearMDP
from .environments._linear import SyntheticLinearMDP as SyntheticLinearMDP
from .errors import BelatedError as BelatedError
from .errors import DamagedFileError as DamagedFileError
from .errors import InvalidInputError as InvalidInputError
from .errors import UnknownNameError as UnknownNameError
from .runner._callbacks import Callback as Callback
from .runner._executor import run as run
from .runner._executor import run_experiment as run_experiment
from .runner._experiment import Experiment as Experiment
from .runner._results import Results as Results
from .runner._simulation import simulate as simulate
from .types import Agent as Agent
from .types import Algorithm as Algorithm
from .types import Environment as Environment
from .types import Feedback as Feedback
from .types import Policy as Policy
from .types import Problem as Problem
from .types import SimulatorProblem as SimulatorProblem
from .types import SparseRows as SparseRows
from .types import SparseVector as SparseVector
from .types import TablePolicy as TablePolicy
from .types import TableProblem as TableProblem
from .types import Trajectory as Trajectory

__version__: str

__all__ = [
    "AGENTS",
    "BOLD",
    "QPMD",
    "AdversarialMDP",
    "Agent",
    "Algorithm",
    "AutoPSVI",
    "Backlog",
    "Bandit",
    "BelatedError",
    "Bursts",
    "Callback",
    "Chain",
    "ClassificationBandit",
    "Constant",
    "DamagedFileError",
    "DeepSea",
    "DelayByAction",
    "DelayByReward",
    "DelayDistribution",
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
    "Drift",
    "Empirical",
    "Environment",
    "EpsilonGreedy",
    "Experiment",
    "Feedback",
    "FeedbackQueue",
    "FiniteMDP",
    "Fixed",
    "FixedPolicy",
    "Geometric",
    "Greedy",
    "GymEnvironment",
    "IndependentDelays",
    "InvalidInputError",
    "LearnByAge",
    "LinearBandit",
    "Lossy",
    "Mixture",
    "MultiBatch",
    "Multinomial",
    "NChain",
    "NegativeBinomial",
    "OTFLinTS",
    "OTFLinUCB",
    "Outages",
    "Pareto",
    "Periodic",
    "Poisson",
    "Policy",
    "Problem",
    "RandomLinearMDP",
    "RandomPolicy",
    "RareSwitching",
    "Results",
    "RiverSwim",
    "ShopFunnel",
    "SimulatorProblem",
    "SparseRows",
    "SparseVector",
    "SyntheticLinearMDP",
    "TablePolicy",
    "TableProblem",
    "TabularUCBVI",
    "Trajectory",
    "Uniform",
    "UnknownNameError",
    "VarianceWeightedPSVI",
    "load_agent",
    "run",
    "run_experiment",
    "save_agent",
    "simulate",
]
