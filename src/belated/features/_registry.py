"""The feature maps by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.errors import InvalidInputError
from belated.features._adapters import FromCallable, FromSklearn
from belated.features._base import Features
from belated.features._fourier import Fourier, RandomFourier
from belated.features._joint import Joint
from belated.features._one_hot import OneHot
from belated.features._polynomial import Polynomial
from belated.features._radial import RadialBasis
from belated.features._tiles import Tiles

FEATURES: dict[str, type[Features]] = {
    kind.kind: kind
    for kind in (OneHot, Tiles, Fourier, RandomFourier, RadialBasis, Polynomial, FromCallable, FromSklearn, Joint)
}
"""The class behind each name that experiment files use."""

KIND = Kind(
    field="features",
    group="belated.features",
    ours=FEATURES,
    expected="a feature map, with size and encode(observation)",
    fits=lambda made: not isinstance(made, type) and callable(getattr(made, "encode", None)) and hasattr(made, "size"),
    fits_class=lambda kind: callable(getattr(kind, "encode", None)),
)


def features_from_dict(values: Mapping[str, Any]) -> Features:
    """Return the map that plain values describe, the inverse of `to_dict`.

    The field `features` is one of the library's names, one that an installed package brings, or `module:Name`.

    >>> features_from_dict({"features": "fourier", "order": 5})
    Fourier(low=None, high=None, order=5)
    """
    if not isinstance(values, Mapping) or "features" not in values:
        raise refuse("features", values, 'a table such as {"features": "tiles", "tilings": 8}')
    settings = dict(values)
    kind = settings.pop("features")
    found = KIND.own(kind)
    if found is not None:
        made: Features = KIND.make(kind, found, {name: _tuples(value) for name, value in settings.items()})
        return made
    known = fields(FEATURES[kind])
    for name in settings:
        if name not in [field.name for field in known]:
            raise InvalidInputError(
                f"{kind!r} features have the fields {', '.join(field.name for field in known)}, got {name!r}"
            )
    for field in known:
        if field.default is MISSING and field.name not in settings:
            raise InvalidInputError(f"{kind!r} features need the field {field.name!r}")
    return FEATURES[kind](**{name: _tuples(value) for name, value in settings.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
