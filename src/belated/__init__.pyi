"""Written by tools/exports.py: which name comes from where."""

from . import algorithms as algorithms
from . import auto as auto
from . import cache as cache
from . import checks as checks
from . import client as client
from . import compiled as compiled
from . import decisions as decisions
from . import delays as delays
from . import elementary as elementary
from . import environments as environments
from . import errors as errors
from . import evaluation as evaluation
from . import features as features
from . import gymnasium as gymnasium
from . import ink as ink
from . import law_checks as law_checks
from . import named as named
from . import normal as normal
from . import planning as planning
from . import posterior as posterior
from . import progress as progress
from . import rng as rng
from . import runner as runner
from . import sampled as sampled
from . import service as service
from . import stamp as stamp
from . import storage as storage
from . import theory as theory
from . import timing as timing
from . import types as types
from . import validate as validate
from .algorithms.auto_psvi import AutoPSVI as AutoPSVI
from .algorithms.bold import BOLD as BOLD
from .algorithms.dapo import DelayedDAPO as DelayedDAPO
from .algorithms.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from .algorithms.fixed_policy import FixedPolicy as FixedPolicy
from .algorithms.greedy import Greedy as Greedy
from .algorithms.lpsvi import DelayedLPSVI as DelayedLPSVI
from .algorithms.multi_batch import MultiBatch as MultiBatch
from .algorithms.ofu import DelayedOFU as DelayedOFU
from .algorithms.oppo import DelayedOPPO as DelayedOPPO
from .algorithms.otf import OTFLinTS as OTFLinTS
from .algorithms.otf import OTFLinUCB as OTFLinUCB
from .algorithms.phe import DelayedPHE as DelayedPHE
from .algorithms.pslb import DelayedPSLB as DelayedPSLB
from .algorithms.psrl import DelayedPSRL as DelayedPSRL
from .algorithms.psvi import DelayedPSVI as DelayedPSVI
from .algorithms.q_learning import DelayedQLearning as DelayedQLearning
from .algorithms.qpmd import QPMD as QPMD
from .algorithms.random_policy import RandomPolicy as RandomPolicy
from .algorithms.rare_switching import RareSwitching as RareSwitching
from .algorithms.registry import ALGORITHMS as ALGORITHMS
from .algorithms.saving import load_agent as load_agent
from .algorithms.saving import save_agent as save_agent
from .algorithms.tabular_ucbvi import TabularUCBVI as TabularUCBVI
from .algorithms.ucbvi import DelayedUCBVI as DelayedUCBVI
from .delays.base import DelayLaw as DelayLaw
from .delays.base import IndependentLaw as IndependentLaw
from .delays.buffer import DelayBuffer as DelayBuffer
from .delays.composed import Empirical as Empirical
from .delays.composed import Fixed as Fixed
from .delays.composed import Lossy as Lossy
from .delays.composed import Mixture as Mixture
from .delays.in_time import Backlog as Backlog
from .delays.in_time import Bursts as Bursts
from .delays.in_time import Drift as Drift
from .delays.in_time import Outages as Outages
from .delays.in_time import Periodic as Periodic
from .delays.laws import Constant as Constant
from .delays.laws import Geometric as Geometric
from .delays.laws import Multinomial as Multinomial
from .delays.laws import NegativeBinomial as NegativeBinomial
from .delays.laws import Pareto as Pareto
from .delays.laws import Poisson as Poisson
from .delays.laws import Uniform as Uniform
from .delays.outcome import DelayByAction as DelayByAction
from .delays.outcome import DelayByReward as DelayByReward
from .environments.adversarial import AdversarialMDP as AdversarialMDP
from .environments.bandit import Bandit as Bandit
from .environments.bandit import LinearBandit as LinearBandit
from .environments.chain import Chain as Chain
from .environments.classification import ClassificationBandit as ClassificationBandit
from .environments.deepsea import DeepSea as DeepSea
from .environments.finite import FiniteMDP as FiniteMDP
from .environments.gym_environment import GymEnvironment as GymEnvironment
from .environments.nchain import NChain as NChain
from .environments.random_linear import RandomLinearMDP as RandomLinearMDP
from .environments.riverswim import RiverSwim as RiverSwim
from .environments.synthetic import SyntheticLinearMDP as SyntheticLinearMDP
from .errors import BelatedError as BelatedError
from .errors import DamagedFileError as DamagedFileError
from .errors import InvalidInputError as InvalidInputError
from .errors import UnknownNameError as UnknownNameError
from .posterior.gaussian import GaussianPosterior as GaussianPosterior
from .runner.engine import run as run
from .runner.engine import run_experiment as run_experiment
from .runner.experiment import Experiment as Experiment
from .runner.loop import simulate as simulate
from .runner.results import Results as Results
from .runner.watching import Callback as Callback
from .types import Agent as Agent
from .types import Algorithm as Algorithm
from .types import Feedback as Feedback
from .types import Policy as Policy
from .types import Problem as Problem
from .types import Trajectory as Trajectory

__version__: str

__all__ = [
    "ALGORITHMS",
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
    "DelayBuffer",
    "DelayByAction",
    "DelayByReward",
    "DelayLaw",
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
    "EpsilonGreedy",
    "Experiment",
    "Feedback",
    "FiniteMDP",
    "Fixed",
    "FixedPolicy",
    "GaussianPosterior",
    "Geometric",
    "Greedy",
    "GymEnvironment",
    "IndependentLaw",
    "InvalidInputError",
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
    "SyntheticLinearMDP",
    "TabularUCBVI",
    "Trajectory",
    "Uniform",
    "UnknownNameError",
    "load_agent",
    "run",
    "run_experiment",
    "save_agent",
    "simulate",
]
