"""`ClassificationBandit`: a table of recorded rows and classes, replayed as a contextual bandit."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from belated._util.validate import array, choice, integer, refuse
from belated.environments._bandit import Bandit
from belated.environments._finite import full_name, unit_features
from belated.errors import BelatedError, InvalidInputError
from belated.types import Floats, Ints

#: The tables that come with scikit-learn, and what it calls them.
DATASETS = {"digits": "load_digits", "wine": "load_wine", "breast-cancer": "load_breast_cancer"}
#: Wider built-in tables are reduced to this many principal components.
COMPONENTS = 16
ORDERS = ("random", "recorded")


class ClassificationBandit(Bandit):
    """Predict the class of a row: reward 1 if correct, 0 if not.

    `dataset` is `"digits"` (1797 rows, 10 classes), `"wine"` (178, 3) or `"breast-cancer"` (569, 2), which come with
    scikit-learn: `pip install 'belated[data]'`. Each round shows a random row, or with `order="recorded"` the next one,
    starting over at the end. Action a is the a-th class.

    The columns are standardised, and replaced by their 16 leading principal components if there are more. The
    features φ(row, a) are these p numbers and an intercept in the a-th of A blocks, zero elsewhere: a linear model for
    each class, d = A·(p + 1). All are divided by the maximum norm.

    The optimal policy is always right, so regret is the expected number of errors. A linear model may not get close to
    it: see `linearity()`.

    >>> ClassificationBandit("wine")
    ClassificationBandit('classification-wine', states=178, actions=3, dimension=42, horizon=1)
    """

    def __init__(self, dataset: str = "digits", order: str = "random") -> None:
        dataset, order = choice("dataset", dataset, DATASETS), choice("order", order, ORDERS)
        rows, classes = _load(dataset)
        super().__init__(
            *_tables(rows, classes, COMPONENTS if rows.shape[1] > COMPONENTS else None),
            in_turn=order == "recorded",
            name=full_name(f"classification-{dataset}", order if order != "random" else ""),
        )
        self._specification = {"environment": "classification", "dataset": dataset, "order": order}

    @staticmethod
    def from_table(X: Any, y: Any, order: str = "random", components: int | None = None, name: str = "table") -> Bandit:
        """Return the bandit of your own table: rows `X` of shape (n, p) and their n classes `y`.

        Classes may be of any sortable type; action a is the a-th in that order. With `components`, the standardised
        columns are replaced by that many leading principal components.

        >>> ClassificationBandit.from_table([[1.0], [2.0], [4.0]], ["low", "low", "high"])
        Bandit('table', states=3, actions=2, dimension=4, horizon=1)
        """
        in_turn = choice("order", order, ORDERS) == "recorded"
        rows = array("X", X, (None, None))
        integer("the number of columns of X", rows.shape[1], at_least=1)
        classes = _classes(y, len(rows))
        if components is not None:
            components = integer("components", components, at_least=1, at_most=min(rows.shape))
        return Bandit(*_tables(rows, classes, components), in_turn=in_turn, name=name)


def _load(dataset: str) -> tuple[Floats, Ints]:
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        message = f"the dataset {dataset!r} needs scikit-learn, got none installed: pip install 'belated[data]'"
        raise BelatedError(message) from None
    rows, classes = getattr(datasets, DATASETS[dataset])(return_X_y=True)
    return array("X", rows, (None, None)), _classes(classes, len(rows))


def _classes(y: Any, rows: int) -> Ints:
    """Return the class of each row as an index into the sorted classes."""
    expected = f"{rows} classes, one for each row of X"
    try:
        given = np.asarray(y)
        kinds, numbers = np.unique(given, return_inverse=True)
    except (TypeError, ValueError):  # ragged, or not sortable
        raise refuse("y", y, expected) from None
    if given.shape != (rows,):
        raise InvalidInputError(f"y must have shape ({rows},), got {given.shape}")
    if given.dtype.kind in "fc" and not np.isfinite(given).all():
        raise refuse("y", y, f"{expected}, none of them missing")
    integer("the number of different classes in y", len(kinds), at_least=2)
    return numbers.astype(np.int64)


def _tables(rows: Floats, classes: Ints, components: int | None) -> tuple[Floats, Floats]:
    """Return the features (n, A, A·(p+1)) and the rewards (n, A)."""
    varies = rows.max(axis=0) > rows.min(axis=0)  # rounding gives a constant column a nonzero deviation
    columns = (rows - rows.mean(axis=0)) / np.where(varies, rows.std(axis=0), 1.0)
    if components is not None:
        columns = _principal(columns, components)
    described = np.column_stack([columns, np.ones(len(rows))])
    right = np.eye(int(classes.max()) + 1)[classes]
    # φ(row, a) = e_a ⊗ (row, 1)
    features = np.einsum("ab,np->nabp", np.eye(right.shape[1]), described)
    return unit_features(features.reshape(*right.shape, -1)), right


def _principal(columns: Floats, components: int) -> Floats:
    axes = np.linalg.svd(columns, full_matrices=False)[2][:components]
    # An axis and its opposite are equally good; making the largest entry positive fixes which, on any machine.
    largest = axes[np.arange(components), np.abs(axes).argmax(axis=1)]
    scores: Floats = columns @ (axes * np.sign(largest)[:, np.newaxis]).T
    return scores
