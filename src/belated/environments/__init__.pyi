"""Written by tools/exports.py: which name comes from where."""

from .adversarial import AdversarialMDP as AdversarialMDP
from .bandit import Bandit as Bandit
from .bandit import LinearBandit as LinearBandit
from .chain import Chain as Chain
from .classification import ClassificationBandit as ClassificationBandit
from .deepsea import DeepSea as DeepSea
from .finite import FiniteMDP as FiniteMDP
from .gym import as_gymnasium as as_gymnasium
from .gym import from_gymnasium as from_gymnasium
from .gym_environment import GymEnvironment as GymEnvironment
from .gym_environment import TablePolicy as TablePolicy
from .gym_environment import any_environment_from_dict as any_environment_from_dict
from .kernels import World as World
from .linearity import Linearity as Linearity
from .nchain import NChain as NChain
from .random_linear import RandomLinearMDP as RandomLinearMDP
from .registry import ENVIRONMENTS as ENVIRONMENTS
from .registry import environment_from_dict as environment_from_dict
from .riverswim import RiverSwim as RiverSwim
from .synthetic import SyntheticLinearMDP as SyntheticLinearMDP

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
