"""Everything the theorems say about one problem."""

from __future__ import annotations

import math

from belated import Poisson, theory

SIZES = (2, 2, 20, 0.1)


def test_the_summary_agrees_with_its_parts() -> None:
    distribution = Poisson(3)
    found = theory.bounds(*SIZES, distribution)
    rows = {row.symbol: row.value for row in found.to_rows()}
    assert len(rows) == len(found.to_rows())
    d, H, K, delta = SIZES
    expected = {
        "d": d,
        "H": H,
        "K": K,
        "δ": delta,
        "E[τ]": 3.0,
        "v": math.sqrt(6),
        "b": 1.0,
        "max τ": theory.delay_bound(distribution, K, delta),
        "max U": theory.missing_bound(distribution, K, delta),
        "D": theory.delay_term(distribution, H, K, delta),
        "M": 469,
        "ν": theory.psvi_concentration(*SIZES).value,
        "n": theory.psvi_concentration(*SIZES).iterations,
        "C_w": theory.weight_bound(d, H, K, 469, delta / 4, theory.psvi_concentration(*SIZES).value),
        "β": theory.psvi_beta(*SIZES),
        "Σ‖φ‖²": theory.potential_bound(d, K),
        "Σ‖φ‖": theory.delayed_error_bound(*SIZES, distribution),
        "R₁": theory.psvi_regret_bound(*SIZES, distribution).total,
        "R₁ (τ)": theory.psvi_regret_bound(*SIZES, distribution).delay,
        "γ": theory.temperature(*SIZES),
        "n_γ": theory.lpsvi_concentration(*SIZES).iterations,
        "κ": 21.0,
        "η": 1 / 84,
        "N₁": theory.chain_length(*SIZES).optimism,
        "N₂": theory.chain_length(*SIZES).spread,
        "N₃": theory.chain_length(*SIZES).accuracy,
        "N": 536,
        "β_L": theory.lpsvi_beta(*SIZES),
        "R₂": theory.lpsvi_regret_bound(*SIZES, distribution).total,
        "R₂ (τ)": theory.lpsvi_regret_bound(*SIZES, distribution).delay,
        "R_b": theory.bandit_regret_bound(d, K, delta, distribution).total,
        "HK": 40,
    }
    assert rows == expected
    lines = found.table().splitlines()
    assert len(lines) == len(rows)
    assert len({len(line) for line in lines}) == 1
    assert lines[-1].split() == ["HK", "maximum", "regret", "40"]
