"""Feature maps by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.features._adapters import FromCallable, FromSklearn
from belated.features._base import Features
from belated.features._bases import Fourier, Polynomial, RadialBasis, RandomFourier
from belated.features._joint import Joint
from belated.features._one_hot import OneHot
from belated.features._tiles import Tiles

FEATURES: dict[str, type[Features]] = {
    kind.kind: kind
    for kind in (OneHot, Tiles, Fourier, RandomFourier, RadialBasis, Polynomial, FromCallable, FromSklearn, Joint)
}
"""The library's feature maps by the names that experiment files use."""

KIND = Kind(
    field="features",
    group="belated.features",
    ours=FEATURES,
    expected="a feature map, with size and encode(observation)",
    fits=lambda made: (
        isinstance(made, Features)
        or (not isinstance(made, type) and callable(getattr(made, "encode", None)) and hasattr(made, "size"))
    ),
    fits_class=lambda kind: callable(getattr(kind, "encode", None)),
)


def features_from_dict(values: Mapping[str, Any]) -> Features:
    """Return the map that plain values describe, the inverse of `to_dict`.

    The field `features` is one of the library's names, one that an installed package adds, or `module:Name`.

    >>> features_from_dict({"features": "fourier", "order": 5})
    Fourier(low=None, high=None, order=5)
    """
    if not isinstance(values, Mapping) or "features" not in values:
        raise refuse("features", values, 'a table such as {"features": "tiles", "tilings": 8}')
    settings = {key: _tuples(value) for key, value in values.items()}
    name = settings.pop("features")
    made: Features = KIND.make(name, KIND.own(name) or FEATURES[name], settings)
    return made


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
