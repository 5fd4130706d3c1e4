"""Feature maps by name, and from the plain values of a configuration file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from belated._util.plugins import Kind, has_method
from belated._util.validate import refuse
from belated.features._adapters import FromCallable, FromSklearn, Joint
from belated.features._adaptive import Adaptive
from belated.features._base import Features, has_text, integer_sizes
from belated.features._bases import Fourier, Polynomial, RadialBasis, RandomFourier
from belated.features._distinct import Distinct
from belated.features._hashed import Hashed
from belated.features._network import Network
from belated.features._one_hot import OneHot
from belated.features._tiles import Tiles

FEATURES: dict[str, type[Features]] = {
    kind.kind: kind
    for kind in (
        OneHot,
        Tiles,
        Fourier,
        RandomFourier,
        RadialBasis,
        Polynomial,
        FromCallable,
        FromSklearn,
        Joint,
        Adaptive,
        Distinct,
        Hashed,
        Network,
    )
}
"""The built-in feature maps by their names in experiment files."""

KIND = Kind(
    field="features",
    group="belated.features",
    ours=FEATURES,
    expected="a feature map, with size and encode(observation)",
    fits=lambda made: (
        isinstance(made, Features)
        or (not isinstance(made, type) and callable(getattr(made, "encode", None)) and hasattr(made, "size"))
    ),
    fits_class=lambda kind: has_method(kind, "encode"),
)


def features_from_dict(values: Mapping[str, Any]) -> Features:
    """Return the map described by plain values, the inverse of `to_dict`.

    The field `features` is a built-in name, one registered by an installed package, or `module:Name`.

    >>> features_from_dict({"features": "fourier", "order": 5})
    Fourier(low=None, high=None, order=5)
    """
    if not isinstance(values, Mapping) or "features" not in values:
        raise refuse("features", values, 'a table such as {"features": "tiles", "tilings": 8}')
    settings = {key: _built(value) for key, value in values.items()}
    name = settings.pop("features")
    made: Features = KIND.make(name, KIND.own(name) or FEATURES[name], settings)
    return made


def _built(value: Any) -> Any:
    """Return a setting: lists become tuples, and the table of a map that map."""
    if isinstance(value, Mapping) and "features" in value:
        return features_from_dict(value)
    return tuple(map(_built, value)) if isinstance(value, list | tuple) else value


#: The maximum number of states for one-hot features.
TABLE = 10_000


def automatic(observation_space: Any) -> Features:
    """Return the default feature map for an observation space.

    One-hot if all numbers of an observation are integers and there are at most 10 000 combinations; `Hashed` if it
    contains text; else `Adaptive`.

    >>> from gymnasium.spaces import Box, Discrete, Tuple
    >>> automatic(Tuple((Discrete(32), Discrete(11), Discrete(2))))
    OneHot(sizes=(32, 11, 2), start=(0, 0, 0))
    >>> automatic(Box(low=-1.0, high=1.0, shape=(2,)))
    Adaptive(maps='automatic', first=None)
    """
    if has_text(observation_space):
        return Hashed()
    found = integer_sizes(observation_space)
    if found is not None and math.prod(found[1]) <= TABLE:
        return OneHot(start=found[0], sizes=found[1])
    return Adaptive()
