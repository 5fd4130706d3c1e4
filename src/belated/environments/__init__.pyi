"""Written by tools/exports.py: which name comes from where."""

from ._adversarial import AdversarialMDP as AdversarialMDP
from ._bandit import Bandit as Bandit
from ._bandit import LinearBandit as LinearBandit
from ._chains import Chain as Chain
from ._chains import NChain as NChain
from ._chains import RiverSwim as RiverSwim
from ._classification import ClassificationBandit as ClassificationBandit
from ._deepsea import DeepSea as DeepSea
from ._finite import FiniteMDP as FiniteMDP
from ._finite import Linearity as Linearity
from ._funnel import ShopFunnel as ShopFunnel
from ._gym_bridge import as_gymnasium as as_gymnasium
from ._gym_bridge import from_gymnasium as from_gymnasium
from ._gym_environment import GymEnvironment as GymEnvironment
from ._gym_environment import any_environment_from_dict as any_environment_from_dict
from ._kernels import World as World
from ._linear import RandomLinearMDP as RandomLinearMDP
from ._linear import SyntheticLinearMDP as SyntheticLinearMDP
from ._play import play as play
from ._registry import ENVIRONMENTS as ENVIRONMENTS
from ._registry import environment_from_dict as environment_from_dict

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
    "ShopFunnel",
    "SyntheticLinearMDP",
    "World",
    "any_environment_from_dict",
    "as_gymnasium",
    "environment_from_dict",
    "from_gymnasium",
    "play",
]
