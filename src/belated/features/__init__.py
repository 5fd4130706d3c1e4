"""Feature maps: from an observation to the feature vector ψ(s) that agents learn from."""

from belated.features._adapters import FromCallable, FromSklearn, Joint
from belated.features._adaptive import Adaptive
from belated.features._base import Features, Seen
from belated.features._bases import Fourier, Polynomial, RadialBasis, RandomFourier
from belated.features._distinct import Distinct
from belated.features._hashed import Hashed
from belated.features._network import Network
from belated.features._one_hot import OneHot
from belated.features._registry import FEATURES, automatic, features_from_dict
from belated.features._tiles import Tiles

__all__ = [
    "FEATURES",
    "Adaptive",
    "Distinct",
    "Features",
    "Fourier",
    "FromCallable",
    "FromSklearn",
    "Hashed",
    "Joint",
    "Network",
    "OneHot",
    "Polynomial",
    "RadialBasis",
    "RandomFourier",
    "Seen",
    "Tiles",
    "automatic",
    "features_from_dict",
]
