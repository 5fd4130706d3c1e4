"""The rule on very many sparse features, with regressions stored as rows.

Each part of the noise is the solution of a regression on the same rows, so that Ω is never formed:

    (I − λΩ⁻¹)e, e ~ N(0, Ω⁻¹):  e less the solution for targets 0 and the prior mean e,
    Ω⁻¹D^{½}z₂:                  the solution for targets √ℓ·z₂,
    τλΩ⁻¹z₃:                     the solution for targets 0 and the prior mean τz₃,

with the leverages ℓ = φᵀΩ⁻¹φ estimated from draws of e as the mean of (φᵀe)².
"""

from __future__ import annotations

import numpy as np

from belated._kernels.normals import standard_normals
from belated._kernels.sparse_ridge import Singles
from belated.agents._auto.rule import Rule, clipped_all, hidden_width, prior_mean, residual_width
from belated.agents._row_regression import Layout, RowRegression, best_values, warm_duals
from belated.agents._transitions import Rows
from belated.types import Floats

#: Scale of the tolerance of the mean, relative to the range of one reward: about the width of the draws.
WIDTH = 0.3
#: Minimum number of draws from which leverages are estimated.
MEMBERS = 32


def plan_by_rows(
    rule: Rule,
    layout: Layout,
    rows: Rows,
    share: float,
    slot: int,
    steps: range,
    before: tuple[np.ndarray, Singles],
    rng: np.random.Generator,
    weights: Floats,
) -> tuple[RowRegression, Singles]:
    """Plan these `steps` of J members into `weights` (J, H, B, k), in which later steps are already set.

    `share` is p̂, and `before` are the keys and duals of the last plan. Return the regression, and its duals.
    """
    count, blocks, k = len(weights), layout.blocks, layout.features.size
    norm = float(np.sqrt(layout.psi.power(2).sum(axis=1).max())) or 1.0
    ridge, members = rule.ridge * norm**2, count * len(steps)
    seeds = rng.integers(2**62, size=2)
    regression = RowRegression(
        layout, rows, slot=slot, steps=max(members, MEMBERS), draws=1, noise=1.0, ridge=ridge, seed=int(seeds[0])
    )
    n = regression.visits
    leverages = np.minimum(np.mean((regression.phi @ regression.deviations) ** 2, axis=1), 1.0 / n)
    none, deviations = regression.zeros(1), np.ascontiguousarray(regression.deviations[:, :members])
    shrunk = regression.solved(deviations.copy(), regression.zeros(members), none)
    residual_noise = deviations - shrunk
    scaled = np.sqrt(leverages / n)[:, np.newaxis] * standard_normals(rng, (len(n), members))
    hidden_noise = regression.solved(np.zeros_like(deviations), regression.zeros(members), scaled.astype(np.float32))
    prior_noise = regression.prior(rule.prior / norm, members=members, seed=int(seeds[1]))
    regression.solved(prior_noise, regression.zeros(members), none, unit=rule.prior or None)
    unit = WIDTH * rule.span
    freedom = float(n @ (1.0 - leverages))
    duals, new = warm_duals(*before, regression.keys)
    for j in range(count):
        for h in reversed(steps):
            place, left = h - steps[0], rule.horizon - h
            values = np.zeros(regression.count + 1)
            if left > 1:
                above = np.ascontiguousarray(weights[j, h + 1].T, np.float32)
                best_values(regression.following, above, values[:-1])
                values[:-1] = clipped_all(rule, values[:-1], left - 1)
            gains = rule.discount * values - prior_mean(rule, left)  # the terminal state, the last, has value 0
            gained = gains[regression.after]
            targets = regression.pair_sums(rows.rewards + rows.visits * gained) / n
            if place + 1 < len(steps):
                duals[new, place] = duals[new, place + 1]
            start = np.ascontiguousarray(duals[:, place, np.newaxis])
            mean = regression.mean(targets, start, unit)[:, 0]
            duals[:, place] = start[:, 0]
            squares = float((rows.squares + gained * (2.0 * rows.rewards + rows.visits * gained)).sum())
            left_over = squares - float(n @ targets**2) + float(n @ (targets - regression.phi @ mean) ** 2)
            column, steps_seen = j * len(steps) + place, float(n.sum())
            width = residual_width(rule, max(left_over, 0.0), steps_seen)
            unit = max(unit, width)
            hidden = hidden_width(rule, share, max(left_over, 0.0), freedom)
            drawn = mean + width * residual_noise[:, column] + hidden * hidden_noise[:, column] + prior_noise[:, column]
            weights[j, h] = drawn.reshape(k, blocks).T
    return regression, duals
