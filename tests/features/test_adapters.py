"""Functions and transformers of others as feature maps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_maps import dense, observations
from gymnasium import spaces
from refusals import refusals
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import PolynomialFeatures

from belated.errors import InvalidInputError
from belated.features import FromCallable, FromSklearn, Seen, features_from_dict


def test_a_transformer_is_fitted_once_and_saved_with_what_it_was_fitted_to() -> None:
    from sklearn.kernel_approximation import RBFSampler

    space = spaces.Box(-np.inf, np.inf, (3,))
    rows = observations(50)
    unfitted = FromSklearn(transformer=RBFSampler(n_components=17, random_state=4))
    features = unfitted.fitted(Seen(space, lambda: list(rows)))
    expected = RBFSampler(n_components=17, random_state=4).fit(rows).transform(rows[:1])[0]
    np.testing.assert_allclose(dense(features, rows[0]), expected)
    again = features_from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(dense(again, rows[1]), dense(features, rows[1]))


class Late(list[float]):
    """Returns one number more every time."""

    def __call__(self, observation: Any) -> list[float]:
        self.append(0.0)
        return self


class Wider(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that returns one number more every time."""

    def fit(self, rows: Any, y: Any = None) -> Wider:
        self.width_ = 0
        return self

    def transform(self, rows: Any) -> Any:
        self.width_ += 1
        return np.ones((len(rows), self.width_))


class Plain:
    """Has the methods of a transformer and is none of scikit-learn's."""

    def fit(self, rows: Any) -> Plain:
        return self

    def transform(self, rows: Any) -> Any:
        return rows


@refusals(
    (lambda: FromCallable(function=3), "function must be a function, or a name of the form"),  # type: ignore[arg-type]
    (lambda: FromCallable(function=lambda o: [1.0], width=2).encode(0), "must always return 2 features, got 1"),
    (lambda: FromCallable(function=lambda o: [np.nan], width=1).encode(0), "must return finite features, got nan at"),
    (
        lambda: FromCallable(function=lambda o: [1.0], width=1).to_dict(),
        "function must be importable as 'package.module:name' to be",
    ),
    (
        lambda: FromCallable(function=Late()).fitted(Seen(spaces.Discrete(2), lambda: [0])),
        "the function must always return 1 features, got 2",
    ),
    (
        lambda: FromCallable(function=lambda o: np.random.default_rng().random(2)).fitted(
            Seen(spaces.Discrete(2), lambda: [0])
        ),
        "function must be deterministic: the same observation has given two different features",
    ),
    (lambda: FromSklearn(transformer=3), "transformer must be a scikit-learn transformer, with fit and transform"),
    (lambda: FromSklearn(transformer=Plain()), "transformer must be a scikit-learn .* derived from its BaseEstimator"),
    (
        lambda: FromSklearn(transformer=Wider().fit([[0.0]])).encode([1.0]),
        "the transformer must always return 1 features, got 2",
    ),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures()).size,
        "transformer of 'sklearn' features must be fitted",
    ),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures().fit([[0.0]])).encode([1.0, 2.0]),
        "the transformer rejects an observation: X has 2 features",
    ),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures().fit([[0.0]])).to_dict(),
        "transformer must be given by name, 'package.module:name'",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
