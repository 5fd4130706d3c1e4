"""Feature maps: from any observation to the features ψ(s) that the agents learn on."""

from belated.features.adapters import FromCallable, FromSklearn
from belated.features.automatic import automatic
from belated.features.base import Features
from belated.features.fourier import Fourier, RandomFourier
from belated.features.one_hot import OneHot
from belated.features.polynomial import Polynomial
from belated.features.radial import RadialBasis
from belated.features.registry import FEATURES, features_from_dict
from belated.features.spaces import Seen
from belated.features.tiles import Tiles

__all__ = [
    "FEATURES",
    "Features",
    "Fourier",
    "FromCallable",
    "FromSklearn",
    "OneHot",
    "Polynomial",
    "RadialBasis",
    "RandomFourier",
    "Seen",
    "Tiles",
    "automatic",
    "features_from_dict",
]
