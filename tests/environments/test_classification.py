"""A table replayed as a bandit: the features against scikit-learn, the rounds against the table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from belated._kernels.streams import stream
from belated.environments import Bandit, ClassificationBandit, environment_from_dict
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.types import Floats, TablePolicy

LOADERS = {"digits": load_digits, "wine": load_wine, "breast-cancer": load_breast_cancer}


@pytest.fixture(scope="module")
def bandits() -> dict[str, ClassificationBandit]:
    return {name: ClassificationBandit(name) for name in LOADERS}


def described(bandit: Bandit) -> Floats:
    """Return the row that the blocks repeat, (n, p+1), with the intercept made 1 again."""
    size = bandit.dimension // bandit.actions
    blocks = bandit.features.reshape(bandit.states, bandit.actions, bandit.actions, size)
    for action in range(bandit.actions):
        np.testing.assert_array_equal(blocks[:, action, action], blocks[:, 0, 0])
        assert not blocks[:, action, np.arange(bandit.actions) != action].any()
    row: Floats = blocks[:, 0, 0] / blocks[:, 0, 0, -1:]
    return row


@pytest.mark.parametrize("name", LOADERS)
def test_features_are_what_scikit_learn_makes_of_the_table(name: str, bandits: dict[str, ClassificationBandit]) -> None:
    rows, classes = LOADERS[name](return_X_y=True)
    expected = StandardScaler().fit_transform(rows)
    found = described(bandits[name])[:, :-1]
    if rows.shape[1] > 16:
        expected = PCA(n_components=16, svd_solver="full").fit_transform(expected)
        signs = np.sign((expected * found).sum(axis=0))  # each component only up to its sign
        expected = expected * signs
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(bandits[name].rewards[0], np.eye(classes.max() + 1)[classes])
    assert bandits[name].optimal_value == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(bandits[name].optimal_policy().actions[0], classes)
    assert np.linalg.norm(bandits[name].features, axis=-1).max() == pytest.approx(1.0, abs=1e-15)


def test_sizes(bandits: dict[str, ClassificationBandit]) -> None:
    sizes = {name: bandit.features.shape for name, bandit in bandits.items()}
    assert sizes == {"digits": (1797, 10, 170), "wine": (178, 3, 42), "breast-cancer": (569, 2, 34)}


def test_a_linear_model_of_the_features_is_one_regression_for_each_class(
    bandits: dict[str, ClassificationBandit],
) -> None:
    bandit = bandits["wine"]
    rows, classes = load_wine(return_X_y=True)
    regression = LinearRegression().fit(rows, np.eye(3)[classes])
    worst = np.abs(regression.predict(rows) - np.eye(3)[classes]).max()
    assert bandit.linearity().reward_error == pytest.approx(worst, rel=1e-9)


def test_rows_are_drawn_uniformly_and_pay_for_the_right_class_only() -> None:
    bandit = ClassificationBandit.from_table([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]], ["low", "low", "high"])
    assert bandit.rewards[0].tolist() == [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]  # in sorted order: high, low
    rng, always_low = stream(0, "environment"), TablePolicy(np.ones((1, 3), np.int64))
    rounds = [bandit.rollout(always_low, rng) for _ in range(3000)]
    rows = np.array([each.states[0] for each in rounds])
    assert stats.chisquare(np.bincount(rows, minlength=3)).pvalue > 1e-4
    np.testing.assert_array_equal([each.rewards[0] for each in rounds], rows != 2)


def test_features_of_a_small_table_by_hand() -> None:
    bandit = ClassificationBandit.from_table([[1, 7], [3, 7]], [True, False], name="mine")
    # standardised (-1, 0) and (1, 0), where a constant column becomes zero; with the intercept all norms are √2
    rows = np.array([[-1, 0, 1], [1, 0, 1]]) / np.sqrt(2)
    expected = [[[*row, 0, 0, 0], [0, 0, 0, *row]] for row in rows]
    np.testing.assert_allclose(bandit.features, expected, rtol=0, atol=1e-15)
    assert bandit.label == "mine"
    rounded = ClassificationBandit.from_table([[1, 0.1], [2, 0.1], [4, 0.1]], [0, 1, 1])
    assert np.abs(described(rounded)[:, 1]).max() < 1e-15  # though np.std([0.1, 0.1, 0.1]) is not zero


def test_recorded_order_starts_again_at_the_end() -> None:
    bandit = ClassificationBandit.from_table([[1.0], [2.0], [4.0]], [0, 1, 1], order="recorded")
    rng = stream(0, "environment")
    assert [bandit.first_state(rng, episode=k) for k in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert ClassificationBandit("wine", order="recorded").first_state(rng, episode=179) == 1


def test_components_are_the_leading_ones() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    bandit = ClassificationBandit.from_table(rows, rng.integers(2, size=40), components=2)
    found = described(bandit)[:, :-1]
    centred = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)  # another way to the same components
    np.testing.assert_allclose((found**2).sum(axis=0), values[::-1][:2])
    np.testing.assert_allclose(np.abs(found), np.abs(centred @ axes[:, ::-1][:, :2]), atol=1e-10)
    opposite = described(ClassificationBandit.from_table(rows[::-1], rng.integers(2, size=40), components=2))[:, :-1]
    np.testing.assert_allclose(opposite[::-1], found, atol=1e-10)  # the sign does not depend on the order of rows


@pytest.mark.parametrize("order", ["random", "recorded"])
def test_round_trip_through_json(order: str) -> None:
    bandit = ClassificationBandit("wine", order)
    again = environment_from_dict(json.loads(json.dumps(bandit.to_dict())))
    assert isinstance(again, ClassificationBandit)
    assert (again.to_dict(), again.label) == (bandit.to_dict(), bandit.label)
    assert bandit.label == ("classification-wine" if order == "random" else "classification-wine-recorded")
    np.testing.assert_array_equal(again.features, bandit.features)


def test_a_table_of_ones_own_has_a_digest_but_no_specification() -> None:
    rows, classes = load_wine(return_X_y=True)
    bandit = ClassificationBandit.from_table(rows, classes)
    np.testing.assert_array_equal(bandit.features, ClassificationBandit("wine").features)
    assert set(bandit.describe()) == {"tables"}
    with pytest.raises(InvalidInputError, match="has no plain specification, got Bandit"):
        bandit.to_dict()


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(BelatedError, match=r"'wine' needs scikit-learn, .* pip install 'belated\[data\]'"):
        ClassificationBandit("wine")
    assert ClassificationBandit.from_table([[1.0], [2.0]], [0, 1]).states == 2


def test_scikit_learn_is_imported_only_when_needed() -> None:
    code = (
        "import sys, belated; belated.ClassificationBandit.from_table([[1.0], [2.0]], [0, 1]);"
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


BAD: list[tuple[dict[str, Any], str]] = [
    ({"X": [1.0, 2.0]}, r"X must have shape \(any, any\), got \(2,\)"),
    ({"X": [["a"], ["b"]]}, r"X must be an array of numbers"),
    ({"X": [[1.0], [np.nan]]}, r"X must be finite, got nan at index \(1, 0\)"),
    ({"X": np.ones((2, 0))}, "the number of columns of X must be an integer >= 1, got 0"),
    ({"y": [0, 1, 1]}, r"y must have shape \(2,\), got \(3,\)"),
    ({"y": [[0], [1]]}, r"y must have shape \(2,\), got \(2, 1\)"),
    ({"y": [0, None]}, r"y must be 2 classes, one for each row of X, got \[0, None\]"),
    ({"y": [[0], [1, 2]]}, "y must be 2 classes, one for each row of X"),
    ({"y": [0.0, np.nan]}, "y must be 2 classes, one for each row of X, none of them missing"),
    ({"y": ["a", "a"]}, "the number of different classes in y must be an integer >= 2, got 1"),
    ({"components": 2}, "components must be an integer >= 1 and <= 1, got 2"),
    ({"components": 0}, "components must be an integer >= 1 and <= 1, got 0"),
    ({"name": ""}, "name must be a non-empty string"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_tables_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ClassificationBandit.from_table(**{"X": [[1.0], [2.0]], "y": [0, 1], **changes})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="dataset must be one of 'digits', 'wine', 'breast-cancer', got 'iris'"):
        ClassificationBandit("iris")
    with pytest.raises(UnknownNameError, match="order must be one of 'random', 'recorded', got 'record'"):
        ClassificationBandit("wine", order="record")
    with pytest.raises(UnknownNameError, match="order must be one of"):
        ClassificationBandit.from_table([[1.0], [2.0]], [0, 1], order="turn")
