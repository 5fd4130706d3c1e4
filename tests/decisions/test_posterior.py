"""The posterior is a ridge regression refitted on the rows that count, whatever the way there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.undo import Row, exact_posterior
from belated.decisions._operations import PosteriorError
from belated.decisions._posterior import Posterior
from belated.decisions._sampling import choose, pick, rank, scores
from belated.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(5)


def refit(rows: Floats, rewards: Floats, weights: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Mean and covariance without the noise, by the textbook."""
    precision = (rows * weights[:, None]).T @ rows + ridge * np.eye(rows.shape[1])
    mean, inverse = np.linalg.solve(precision, rows.T @ (weights * rewards)), np.linalg.inv(precision)
    return np.asarray(mean, np.float64), np.asarray(inverse, np.float64)


def covariance(posterior: Posterior, block: int = 0, now: float = 0.0) -> Floats:
    """That of the weights, from the distribution of d actions with unit features."""
    d = posterior.dimension
    distribution = posterior.distribution(np.vstack([np.eye(d)] * 2), now)
    return (distribution.root @ distribution.root.T)[:d, :d]


def test_by_hand() -> None:
    posterior = Posterior(1, noise=0.5, ridge=2.0)
    posterior.learn(0, np.array([3.0]), 1.0)
    posterior.learn(0, np.array([1.0]), -2.0)
    assert posterior.mean() == pytest.approx([4 / 42], rel=1e-14)  # (2 + 10/0.25)⁻¹ (3 − 2)/0.25
    posterior.correct(0, np.array([1.0]), -2.0, 1.0)
    assert posterior.mean() == pytest.approx([16 / 42], rel=1e-14)
    assert covariance(posterior)[0, 0] == pytest.approx(1 / 42, rel=1e-14)
    posterior.unlearn(0, np.array([3.0]), 1.0)
    assert posterior.mean() == pytest.approx([4 / 6], rel=1e-14)
    assert covariance(posterior)[0, 0] == pytest.approx(1 / 6, rel=1e-14)


def test_the_estimated_noise_by_hand() -> None:
    posterior = Posterior(1, ridge=1.0)
    assert posterior.noise() == 1.0
    posterior.learn(0, np.array([1.0]), 3.0)
    assert posterior.noise() == pytest.approx(math.sqrt((9 + 1.5**2) / (1 + 1 - 1 / 2)))  # θ̂ = 3/2
    posterior.learn(0, np.array([1.0]), 0.0)
    assert posterior.noise() == pytest.approx(math.sqrt((4.5 + 2**2 + 1**2) / (1 + 2 - 2 / 3)))  # θ̂ = 1
    scaled = Posterior(1, ridge=1.0)
    for reward in (3e6, 0.0):
        scaled.learn(0, np.array([1.0]), reward)
    assert scaled.noise() == pytest.approx(1e6 * posterior.noise())  # no unit is special


@pytest.mark.parametrize(("size", "shift"), [(0.3, 0.0), (3.0, 0.0), (0.3, 5.0)])
def test_the_estimated_noise_is_that_of_the_rewards(size: float, shift: float) -> None:
    """Also if the weights, or the mean of the rewards, are larger than the prior expects."""
    rng, sigma, d, n = np.random.default_rng(9), 0.5, 12, 1000
    found = []
    for _ in range(5):
        posterior, weights = Posterior(d, blocks=2), size * rng.standard_normal((2, d)) / np.sqrt(d)
        x = np.column_stack([np.ones(2 * n), rng.standard_normal((2 * n, d - 1))])
        for i in range(2 * n):
            reward = shift + float(weights[i % 2] @ x[i]) + sigma * rng.standard_normal()
            posterior.learn(i % 2, x[i], reward)
        found.append(posterior.noise() ** 2)
    assert np.mean(found) == pytest.approx(sigma**2, rel=0.1)


def test_the_estimated_noise_is_right_although_most_rows_are_forgotten() -> None:
    """With half as many weights as rows that are remembered."""
    rng, sigma, d, half = np.random.default_rng(11), 0.5, 20, 30.0
    found = []
    for _ in range(40):
        posterior = Posterior(d, ridge=0.01)
        for i in range(300):
            posterior.learn(0, rng.standard_normal(d), sigma * rng.standard_normal(), i / half)
        found.append(posterior.noise(300 / half) ** 2)
    assert np.mean(found) == pytest.approx(sigma**2, rel=0.1)


def test_the_noise_is_the_same_after_a_correction_and_from_what_was_saved() -> None:
    rng = np.random.default_rng(10)
    x, y, t = rng.standard_normal((90, 4)), rng.standard_normal(90), np.sort(rng.uniform(0.1, 5.0, 90))
    live, fresh = Posterior(4, blocks=3), Posterior(4, blocks=3)
    for i in range(90):
        live.learn(i % 3, x[i], 7.0, t[i])
        live.correct(i % 3, x[i], 7.0, y[i], t[i])
        live.noise(t[i])
        fresh.learn(i % 3, x[i], y[i], t[i])
    assert live.noise(5.0) == pytest.approx(fresh.noise(5.0), rel=1e-12)
    arrays, again = live.cached(), Posterior(4, blocks=3)
    again.restore(live.state())
    again.restore_cached(arrays)
    assert again.noise() == pytest.approx(live.noise(), rel=1e-14)


@pytest.mark.parametrize("noise", [None, 0.4])
@pytest.mark.parametrize("looks", ["after each", "at the end", "now and then"])
def test_any_history_is_the_refit(noise: float | None, looks: str) -> None:
    d, n, rng = 5, 400, np.random.default_rng(1)
    posterior = Posterior(d, noise=noise, ridge=0.7)
    x, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    kept = np.ones(n, bool)
    for i in range(n):
        posterior.learn(0, x[i], y[i])
        if i % 5 == 4:
            posterior.correct(0, x[i - 3], y[i - 3], y[i - 3] + 2)
            y[i - 3] += 2
        if i % 37 == 36:
            posterior.unlearn(0, x[i - 20], y[i - 20])
            kept[i - 20] = False
        if looks == "after each" or (looks == "now and then" and i % 50 == 0):
            posterior.distribution(x[:2])
    length = 2.0 ** round(np.log2((x[kept] ** 2).sum(axis=1).mean()))
    ridge = 0.7 * (length if noise is None else noise**2)
    mean, inverse = refit(x[kept], y[kept], np.ones(kept.sum()), ridge)
    np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-11)
    squares = float(y[kept] @ y[kept])
    left = kept.sum() - float(np.trace(x[kept] @ inverse @ x[kept].T))  # rows less the trace of the hat matrix
    sigma = (squares / kept.sum() + float(((y[kept] - x[kept] @ mean) ** 2).sum())) / (1 + left)
    sigma = sigma if noise is None else noise**2
    np.testing.assert_allclose(covariance(posterior), sigma * inverse, rtol=1e-9)
    distribution = posterior.distribution(x[:40])
    np.testing.assert_allclose(distribution.mean, x[:40] @ mean, rtol=1e-9)
    assert distribution.width == pytest.approx(
        math.sqrt((x[:40] @ (sigma * inverse) @ x[:40].T).diagonal().max()), rel=1e-9
    )


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(40)), st.booleans())
def test_the_order_leaves_no_trace(order: list[int], fading: bool) -> None:
    rng = np.random.default_rng(2)
    x, y, t = rng.standard_normal((40, 3)), rng.standard_normal(40), rng.uniform(0, 90, 40) * fading
    x[7] *= 1e5
    first, second = Posterior(3), Posterior(3)
    for i in range(40):
        first.learn(0, x[i], y[i], t[i])
    for i in order:
        second.learn(0, x[i], 5.0, t[i])
        second.correct(0, x[i], 5.0, y[i], t[i])
    np.testing.assert_allclose(first.mean(0, 91.0 * fading), second.mean(0, 91.0 * fading), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [1e7, 1e9, 1e12, 1e24])
@pytest.mark.parametrize("time", [0.0, 3.3])
def test_blunders_that_are_taken_back_leave_no_bit(size: float, time: float) -> None:
    rng = np.random.default_rng(3)
    x, y, wrong = rng.standard_normal((200, 4)), rng.standard_normal(200), size * rng.standard_normal((100, 4))
    clean, blundered = Posterior(4), Posterior(4)
    for i in range(200):
        clean.learn(0, x[i], y[i], time)
        blundered.learn(0, x[i], 1e12 / 3 if i == 50 else y[i], time)
        if i % 2:
            blundered.learn(0, wrong[i // 2], 1e6, time)
            blundered.distribution(x[:2], time)
    blundered.correct(0, x[50], 1e12 / 3, y[50], time)
    for i in rng.permutation(100):
        blundered.unlearn(0, wrong[i], 1e6, time)
    one, two = clean.state(), blundered.state()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    np.testing.assert_array_equal(blundered.mean(0, time), clean.mean(0, time))
    np.testing.assert_allclose(covariance(blundered, now=time), covariance(clean, now=time), rtol=1e-9)


def test_a_row_far_larger_than_the_others_spoils_no_draw() -> None:
    """By an update of the root alone it would."""
    rng = np.random.default_rng(12)
    rows = rng.standard_normal((60, 4))
    rows[30] *= 1e12
    live, fresh = Posterior(4, noise=1.0), Posterior(4, noise=1.0)
    for row in rows:
        live.learn(0, row, 1.0)
        live.noise()
        fresh.learn(0, row, 1.0)
    np.testing.assert_allclose(live.distribution(np.eye(4)).mean, fresh.mean(), rtol=1e-5)
    direction = rows[30:31] / 1e12
    assert live.distribution(direction).width == pytest.approx(fresh.distribution(direction).width, rel=1e-7, abs=0.0)


def test_rows_of_very_different_sizes_count_with_all_their_digits() -> None:
    """In doubles the small rows would be lost among the large ones."""
    rng = np.random.default_rng(13)
    x, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    x[:2] *= 1e11
    posterior = Posterior(4, noise=0.1)
    for row, reward in zip(x, y, strict=True):
        posterior.learn(0, row, reward)
    rows = [Row(row, float(reward), 0.0) for row, reward in zip(x, y, strict=True)]
    exact = exact_posterior(rows, 4, ridge=1.0, noise=0.1, now=0.0)
    np.testing.assert_allclose(posterior.mean(), exact.mean, rtol=1e-14)
    drawn = posterior.distribution(np.eye(4))
    np.testing.assert_array_less(np.abs(drawn.mean - exact.mean), 1e-6 * np.array(exact.deviation))
    np.testing.assert_allclose(np.sqrt((drawn.root**2).sum(axis=1)), exact.deviation, rtol=1e-6)


@pytest.mark.parametrize("d", [2, 140])  # in integers; with a slightly larger matrix
def test_features_that_follow_from_one_another_are_lived_with(d: int) -> None:
    posterior = Posterior(d, noise=1e-9, ridge=1e-9)
    x = np.ones(d)
    for _ in range(40):
        posterior.learn(0, x, 2.0)
    assert posterior.distribution(np.vstack([x, -x])).mean == pytest.approx([2.0, -2.0], rel=1e-6)
    assert posterior.mean() @ x == pytest.approx(2.0, rel=1e-6)
    assert posterior.retries
    posterior.correct(0, x, 2.0, 42.0)
    assert posterior.distribution(x[None]).mean == pytest.approx([3.0], rel=1e-6)


def test_nothing_is_drawn_from_a_posterior_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, rows = taught(3)
    monkeypatch.setattr(posterior.sums, "moment", lambda block: np.full(3, np.nan))
    for _ in range(2):
        for draw in (posterior.distribution, lambda rows: posterior.scores(rows, np.array([0]))):
            with pytest.raises(PosteriorError):
                draw(rows)


def test_forgetting_weighs_rows_as_of_their_decisions() -> None:
    rng = np.random.default_rng(4)
    x, y, t = rng.standard_normal((300, 3)), rng.standard_normal(300), np.sort(rng.uniform(0, 200, 300))
    posterior, order = Posterior(3), rng.permutation(300)
    for i in order:  # late rewards come in any order
        posterior.learn(0, x[i], y[i], t[i])
        if i % 7 == 0:
            posterior.distribution(x[:2], t[i])
    weights = 2.0 ** (t - 200.0)
    length = 2.0 ** round(np.log2(float(weights @ (x**2).sum(axis=1)) / weights.sum()))
    mean, inverse = refit(x, y, weights, length)
    np.testing.assert_allclose(posterior.mean(0, 200.0), mean, rtol=1e-10)
    noise = posterior.noise(200.0)
    np.testing.assert_allclose(covariance(posterior, now=200.0), noise**2 * inverse, rtol=1e-8)
    later = posterior.distribution(x[:3], 10_000.0)
    prior = (x[:3] ** 2).sum(axis=1) / length  # all is forgotten: nothing but the prior is left
    np.testing.assert_allclose(
        (later.root @ later.root.T).diagonal() / posterior.noise(10_000.0) ** 2, prior, rtol=1e-6
    )
    np.testing.assert_allclose(later.mean, 0.0, atol=1e-9)


def test_no_unit_matters_if_the_noise_is_estimated() -> None:
    rng = np.random.default_rng(7)
    plain, scaled = Posterior(3), Posterior(3)
    for _ in range(50):
        x, y = rng.standard_normal(3), float(rng.standard_normal())
        plain.learn(0, x, y)
        scaled.learn(0, x / 64.0, 1000.0 * y)
    rows = rng.standard_normal((2, 3))
    one, two = plain.distribution(rows), scaled.distribution(rows / 64.0)
    np.testing.assert_allclose(1000.0 * one.mean, two.mean, rtol=1e-9)
    np.testing.assert_allclose(1000.0 * one.root, two.root, rtol=1e-9)


def test_blocks_are_independent() -> None:
    rng = np.random.default_rng(6)
    posterior, alone = Posterior(2, noise=0.5, blocks=0), [Posterior(2, noise=0.5) for _ in range(3)]
    for i in range(90):
        x, y = rng.standard_normal(2), float(rng.standard_normal())
        posterior.learn(i % 3, x, y)
        alone[i % 3].learn(0, x, y)
    rows = rng.standard_normal((4, 2))
    means, spreads = posterior.scores(rows, np.array([2, 0, -1, 1]))  # of each action in each of four contexts
    for row, mean, spread in zip(rows, means, spreads, strict=True):
        for column, block in enumerate((2, 0, None, 1)):
            single = (Posterior(2, noise=0.5) if block is None else alone[block]).distribution(row[None, :])
            assert (mean[column], spread[column]) == pytest.approx((single.mean[0], single.width), rel=1e-12)
    _, nothing = Posterior(2, blocks=0).scores(rows, np.array([-1, -1]))
    np.testing.assert_allclose(nothing, np.sqrt((rows**2).sum(axis=1))[:, None] * [1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_the_state_is_the_sums_bit_for_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole, stopped = Posterior(3, blocks=0), Posterior(3, blocks=0)
    for i in range(150):
        block, x, y, t = int(rng.integers(3)), rng.standard_normal(3), float(rng.standard_normal()), i / 2.0
        whole.learn(block, x, y, t)
        stopped.learn(block, x, y, t)
        if rng.random() < 0.2:
            again = Posterior(3, blocks=0)
            again.restore(stopped.state())
            stopped = again
        if rng.random() < 0.3:
            whole.distribution(np.ones((1, 3)), t)  # looking changes nothing
    one, two = whole.state(), stopped.state()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limbs", np.zeros((1, 1, 2, 3), np.int64)),
        ("limbs", np.full((1, 1, 3, 4), 1 << 47)),
        ("limbs", np.arange(12).reshape(1, 1, 3, 4)),
        ("limbs", -np.ones((1, 1, 3, 4), np.int64)),
        ("limbs", np.full((1, 1, 3, 4), 0.5)),
        ("names", np.array([0, 0])),
        ("names", np.array([-6])),
        ("names", np.array([40])),
        ("totals", np.zeros((2, 2), np.uint8)),
        ("epoch", np.array(-1)),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    posterior = Posterior(3)
    for x in np.eye(3)[:2]:
        posterior.learn(0, x, 1.0)
    before = posterior.state()
    with pytest.raises(InvalidInputError):
        posterior.restore({**before, name: value})
    assert all(before[name].tobytes() == posterior.state()[name].tobytes() for name in before)


def test_collinear_and_badly_scaled_features_do_not_break_it() -> None:
    posterior = Posterior(3, ridge=1e-12)
    for i in range(500):
        posterior.learn(0, np.array([1e6, 1e6, 1e-6 * (i % 2)]), 1e3)
        distribution = posterior.distribution(np.array([[1e6, 1e6, 0.0], [0.0, 0.0, 1e12]]))
        assert np.isfinite(distribution.mean).all() and np.isfinite(distribution.root).all()
    assert distribution.mean[0] == pytest.approx(1e3, rel=1e-3)
    zero = Posterior(2)
    zero.learn(0, np.zeros(2), 1.0)
    assert zero.distribution(np.zeros((3, 2))).width < 1e-100


def shares(drawn: Floats, width: float = 0.0, floor: float = 0.0) -> Floats:
    """Return the probabilities that draws of the scores lead to."""
    probabilities = np.empty(len(drawn))
    choose(drawn, width, floor, 0.5, probabilities)
    return probabilities


def single(posterior: Posterior, rows: Floats, rng: np.random.Generator) -> int:
    """Return the action that a single draw leads to."""
    return choose(posterior.draw(rows, rng)[:, None], 0.0, 0.0, float(rng.random()), np.empty(len(rows)))


def taught(dimension: int) -> tuple[Posterior, Floats]:
    rng, posterior = np.random.default_rng(8), Posterior(dimension, noise=0.6)
    for _ in range(6):
        posterior.learn(0, rng.standard_normal(dimension), float(rng.standard_normal()))
    return posterior, rng.standard_normal((4, dimension))


@pytest.mark.parametrize("dimension", [3, 12])  # more actions than half the dimension, and fewer
def test_draws_follow_the_distribution(dimension: int) -> None:
    posterior, rows = taught(dimension)
    rng, n = np.random.default_rng(9), 40_000
    inverse = covariance(posterior)
    draws = rng.multivariate_normal(posterior.mean(), inverse, size=n) @ rows.T
    distribution = np.bincount(draws.argmax(axis=1), minlength=4) / n
    assert np.sort(distribution)[-2] > 0.1
    ours = scores(posterior.distribution(rows), n, rng)
    np.testing.assert_allclose(np.cov(ours), rows @ inverse @ rows.T, atol=0.05 * np.cov(ours).max())
    np.testing.assert_allclose(shares(ours), distribution, atol=4.5 * np.sqrt(0.5 / n))
    chosen = np.bincount([single(posterior, rows, rng) for _ in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(chosen, distribution, atol=4.5 * np.sqrt(0.25 / 4000))


@pytest.mark.parametrize("dimension", [2, 20])
def test_equal_actions_share_their_wins(dimension: int) -> None:
    posterior, _ = taught(dimension)
    rows = np.ones((4, dimension))
    rows[3] = 0.0
    rng = np.random.default_rng(1)
    probabilities = shares(scores(distribution := posterior.distribution(rows), 4000, rng), distribution.width)
    np.testing.assert_allclose(probabilities[:3], probabilities[0], atol=1e-12)
    assert probabilities.sum() == pytest.approx(1.0)
    actions = np.bincount([single(posterior, rows[:3], rng) for _ in range(3000)], minlength=3) / 3000
    np.testing.assert_allclose(actions, 1 / 3, atol=0.045)


def test_without_width_a_draw_is_the_mean() -> None:
    posterior, _ = taught(3)
    posterior.configure(scale=0.0, noise=None, ridge=1.0)
    rows = np.eye(3)
    np.testing.assert_allclose(posterior.draw(rows, np.random.default_rng(0)), posterior.mean(), rtol=1e-9)


def test_the_mixture_has_a_floor() -> None:
    posterior, rows = taught(3)
    for draws, floor in ((1, 0.2), (32, 0.04), (8, 1.0)):
        probabilities = shares(scores(posterior.distribution(rows), draws, np.random.default_rng(0)), 0.0, floor)
        assert probabilities.min() >= floor / 4 - 1e-15
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-14)


def test_picks_and_ranks_follow_the_probabilities() -> None:
    rng, p = np.random.default_rng(0), np.array([0.5, 0.0, 0.2, 0.3])
    counts = np.bincount([pick(p, rng.random()) for _ in range(20_000)], minlength=4) / 20_000
    np.testing.assert_allclose(counts, p, atol=0.02)
    assert pick(p, 1.0 - 1e-17) == 3
    orders = np.array([rank(p, pick(p, rng.random()), rng.random(4))[:3] for _ in range(20_000)])
    np.testing.assert_allclose(np.bincount(orders[:, 0], minlength=4) / 20_000, p, atol=0.02)
    second = orders[orders[:, 0] == 0][:, 1]
    np.testing.assert_allclose(np.bincount(second, minlength=4) / len(second), [0, 0, 0.4, 0.6], atol=0.02)
    assert all(sorted(rank(p, 2, rng.random(4))) == [0, 1, 2, 3] for _ in range(100))
    assert rank(p, 0, rng.random(4))[3] == 1  # the impossible comes last
    last = [rank(np.array([1.0, 0.0, 0.0]), 0, rng.random(3)) for _ in range(2000)]
    assert np.mean([order[1] == 1 for order in last]) == pytest.approx(0.5, abs=0.05)  # in any order


def test_what_rounding_explains_too_much_leaves_a_noise() -> None:
    posterior = Posterior(1)
    for reward in range(1, 11):
        posterior.learn(0, np.ones(1), float(reward))
    posterior.noise()
    posterior._totals[:] = 3.0 * posterior.sums.squares, 0.0
    assert posterior._estimate(0.0) == pytest.approx((posterior.sums.squares / 10 / 11) ** 0.5)


def test_a_matrix_without_a_factor_is_enlarged_by_no_more_than_it_takes() -> None:
    d = 130
    precision = np.ones((d, d)) - 3e-13 * np.eye(d)
    lower = np.tril(Posterior(d)._enlarged(precision))
    enlarged = lower @ lower.T - precision
    assert np.diag(enlarged).min() > 3e-13 and np.abs(enlarged).max() < 2e-12


def test_rows_are_brought_in_once_although_another_block_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    posterior, right = Posterior(3, noise=0.5, blocks=2), Posterior(3, noise=0.5, blocks=2)
    posterior.noise()
    for i, x in enumerate(rng.standard_normal((12, 3))):
        for each in (posterior, right):
            each.learn(i % 2, x, float(i))
    posterior.learn(1, np.ones(3), 1.0)
    posterior.unlearn(1, np.ones(3), 1.0)  # so that it is computed again

    def fail(self: Posterior, block: int) -> None:
        raise PosteriorError("no factor")

    with monkeypatch.context() as broken:
        broken.setattr(Posterior, "_renew", fail)
        for _ in range(2):
            with pytest.raises(PosteriorError):
                posterior.noise()
    posterior.noise()
    for block in range(2):
        np.testing.assert_allclose(posterior.cache[block][:, 0], right.mean(block), rtol=1e-9)
