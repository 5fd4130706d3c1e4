"""Finite-horizon environments whose optimal values are known exactly."""

from belated.environments.adversarial import AdversarialMDP
from belated.environments.bandit import Bandit, LinearBandit
from belated.environments.chain import Chain
from belated.environments.classification import ClassificationBandit
from belated.environments.deepsea import DeepSea
from belated.environments.finite import FiniteMDP, Linearity
from belated.environments.gym import as_gymnasium, from_gymnasium
from belated.environments.gym_environment import GymEnvironment, TablePolicy, any_environment_from_dict
from belated.environments.kernels import World
from belated.environments.nchain import NChain
from belated.environments.random_linear import RandomLinearMDP
from belated.environments.registry import ENVIRONMENTS, environment_from_dict
from belated.environments.riverswim import RiverSwim
from belated.environments.synthetic import SyntheticLinearMDP

__all__ = [
    "ENVIRONMENTS",
    "AdversarialMDP",
    "Bandit",
    "Chain",
    "ClassificationBandit",
    "DeepSea",
    "FiniteMDP",
    "GymEnvironment",
    "LinearBandit",
    "Linearity",
    "NChain",
    "RandomLinearMDP",
    "RiverSwim",
    "SyntheticLinearMDP",
    "TablePolicy",
    "World",
    "any_environment_from_dict",
    "as_gymnasium",
    "environment_from_dict",
    "from_gymnasium",
]
