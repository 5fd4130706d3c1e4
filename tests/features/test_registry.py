"""Feature maps by name and from plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from feature_maps import JOINT, MAPS
from refusals import refusals

from belated.errors import InvalidInputError, UnknownNameError
from belated.features import FEATURES, features_from_dict


def test_every_map_is_in_the_registry_and_tested() -> None:
    assert {features.kind for features in (*MAPS, JOINT)} == set(FEATURES)
    assert JOINT.kind not in {features.kind for features in MAPS}  # its rows, one for each action, are another type
    assert all(kind.kind == name for name, kind in FEATURES.items())


def test_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tiles'"):
        features_from_dict({"features": "tile"})


@refusals(
    (lambda: features_from_dict({"tilings": 8}), "features must be a table such as"),
    (lambda: features_from_dict({"features": "tiles", "tiling": 8}), "tiles has no setting 'tiling'"),
    (lambda: features_from_dict({"features": "callable"}), "callable needs the setting 'function'"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
