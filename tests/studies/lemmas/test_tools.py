"""What the study of the lemmas measures, against slower ways to measure it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from belated.experiments import lemmas
from belated.experiments.lemmas import Check, Curve, Part, check
from typer.testing import CliRunner

from belated import (
    Constant,
    DelayedLPSVI,
    DelayedPSVI,
    Feedback,
    Fixed,
    Geometric,
    Lossy,
    Poisson,
    Policy,
    RandomLinearMDP,
    Results,
    RiverSwim,
    simulate,
    theory,
)
from belated.cli import app
from belated.reports import lemmas as report
from belated.reports.tables import table_markdown
from belated.rng import stream
from belated.runner.store import to_parquet

Floats = npt.NDArray[np.float64]

WORLD = RandomLinearMDP(states=3, actions=2, dimension=2, horizon=3, seed=4)
SETTINGS = [
    DelayedPSVI(draws=3, scale=0.7, noise=0.8, ridge=0.5),
    DelayedPSVI(draws=2, scale=50.0),  # beyond the cap, where actions are equal and chance decides
    DelayedLPSVI(draws=3, steps=7, temperature=0.5, step_ratio=0.25, sampler="collapsed", warm_start="cold"),
]
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_plan_is_that_of_the_agent_number_for_number(settings: DelayedPSVI | DelayedLPSVI) -> None:
    agent, rng = settings.start(WORLD.problem), np.random.default_rng(0)
    for episode in range(12):
        found = lemmas.plan(agent, np.random.default_rng(episode))
        policy = agent.plan(np.random.default_rng(episode))
        np.testing.assert_array_equal(found.policy.actions, policy.actions)
        np.testing.assert_allclose(found.values, agent.record.work.values, atol=1e-9)
        capped = np.minimum(found.q, WORLD.horizon - np.arange(WORLD.horizon)[:, None, None])
        np.testing.assert_allclose(capped.max(axis=2), found.values[:-1], atol=1e-9)
        agent.learn([Feedback(episode, WORLD.rollout(policy, rng))])


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_watched_run_is_that_of_the_runner(settings: DelayedPSVI | DelayedLPSVI) -> None:
    watched = lemmas.watch(WORLD, settings, Poisson(3), episodes=30, seed=5)
    rows = simulate(WORLD, settings, Poisson(3), episodes=30, seed=5)
    assert watched.regret == pytest.approx(rows["regret"][-1], abs=1e-9)
    assert watched.delays.tolist() == rows["delay"].to_list()
    precisions = np.tile(settings.ridge * np.eye(2), (3, 1, 1))
    for h in range(3):
        arrived = watched.features[np.arange(30) + watched.delays < 29, h]
        precisions[h] += arrived.T @ arrived / settings.noise**2
    np.testing.assert_allclose(watched.precisions, precisions, atol=1e-9)


def test_gap_and_deviation_by_hand() -> None:
    """One state, one action, one step: Q* is the reward 1/2, and the only plan has Q = νz over √λ."""
    world = RandomLinearMDP(states=1, actions=1, dimension=1, horizon=1)
    reward = float(world.rewards[0, 0, 0])
    settings = DelayedPSVI(draws=1, scale=2.0, ridge=4.0)
    watched = lemmas.watch(world, settings, Constant(0), episodes=1, seed=3)
    q = 2.0 * stream(3, "agent").standard_normal() / 2.0
    assert watched.gap == pytest.approx(q - reward)
    assert watched.optimistic == float(q >= reward)
    assert watched.deviation == pytest.approx(max(0.0, (abs(q - reward) - 1.0) * 2.0))
    assert watched.regret == 0.0


def random_precision(rng: np.random.Generator, d: int) -> Floats:
    features = rng.normal(size=(30, d)) * 0.6 ** np.arange(d)
    precision: Floats = np.eye(d) + features.T @ features
    return precision


@pytest.mark.parametrize("steps", [1, 3, 40])
def test_the_ratios_are_those_of_the_covariance_added_up_step_by_step(steps: int) -> None:
    omega = random_precision(np.random.default_rng(steps), 4)
    eta = theory.step_size(omega)
    covariance, power = np.zeros((4, 4)), np.eye(4)
    for _ in range(steps):
        covariance += 2 * eta * power @ power
        power = power @ (np.eye(4) - 2 * eta * omega)
    root = np.linalg.cholesky(omega)
    ratios = np.linalg.eigvalsh(root.T @ covariance @ root)
    assert lemmas.covariance_ratios(omega, steps) == pytest.approx((ratios[0], ratios[-1]))
    kappa = theory.condition_number(omega)
    lower = 0.5 * (1 - (1 - 1 / (2 * kappa)) ** (2 * steps))
    assert lemmas.lower_ratio(omega, steps) == pytest.approx(lower)
    assert lower <= ratios[0] <= ratios[-1] <= 1.0


def test_chains_have_the_covariance_of_their_law() -> None:
    omega, chains = random_precision(np.random.default_rng(0), 3), 3000
    error = lemmas.chain_error(omega, 5, chains=chains, rng=np.random.default_rng(1))
    assert 0 < error <= lemmas.sampling_error(3, chains, 0.01)


def test_the_sampling_error_is_exceeded_no_more_often_than_it_may() -> None:
    rng, chains, errors = np.random.default_rng(2), 50, []
    for _ in range(400):
        z = rng.standard_normal((chains, 3))
        errors.append(np.abs(np.linalg.eigvalsh(z.T @ z / chains) - 1).max())
    bound = lemmas.sampling_error(3, chains, 0.5)
    assert np.mean(np.array(errors) > bound) <= 0.5
    assert max(errors) > bound / 2  # not idle


@pytest.mark.parametrize("law", [Constant(0), Constant(3), Geometric(6), Lossy(Poisson(4), 0.3)])
def test_what_is_under_way_and_late_by_counting(law: Any) -> None:
    rng = np.random.default_rng(7)
    delays = law.sample(rng, 2 * 25).reshape(2, 25)
    expected = [
        [sum(delay > k - sent for sent, delay in enumerate(row[: k + 1])) for k in range(25)] for row in delays.tolist()
    ]
    assert lemmas.under_way(delays).tolist() == expected
    features = rng.normal(size=(25, 3))
    arrival = np.arange(25) + np.minimum(delays[0], 1000)
    norms = lemmas.delayed_norms(features, arrival)
    for k in range(25):
        here = features[:k][arrival[:k] < k]
        square = features[k] @ np.linalg.inv(np.eye(3) + here.T @ here) @ features[k]
        assert norms[k] == pytest.approx(np.sqrt(square))


def test_uniform_actions_have_the_mean_value_of_random_policies() -> None:
    world = RandomLinearMDP(states=2, actions=2, dimension=2, horizon=2, seed=3)
    tables = np.stack(np.meshgrid(*[[0, 1]] * 4, indexing="ij"), axis=-1).reshape(16, 2, 2)
    mean = np.mean([world.values(Policy(table)) for table in tables], axis=0)
    np.testing.assert_allclose(lemmas.uniform_values(world), mean)


def test_a_check_compares_every_run_and_shows_the_worst() -> None:
    below = check("L", "c", "x", bound=2.0, runs=np.array([1.0, 2.0, 3.0, 0.0]), promised=0.75)
    assert (below.measured, below.share, below.holds) == (3.0, 0.75, True)
    above = check("L", "c", "x", bound=2.0, runs=np.array([1.0, 2.0, 3.0, 0.0]), promised=0.75, at_least=True)
    assert (above.measured, above.share, above.holds) == (0.0, 0.5, False)


def test_measured_bounds_by_hand() -> None:
    rows = simulate(WORLD, DelayedPSVI(), Fixed([2, 0, 5, 1, 0, 0]), episodes=6, seed=0)
    found = lemmas.measured_bounds(rows, horizon=3)
    regret = float((rows["optimal"] - rows["value"]).sum())
    # under way at the end of each episode: 1, 1, 1 (2 has gone, 2 itself stays), 2, 1, 1
    assert found == {"R₁": pytest.approx(regret), "R₂": found["R₁"], "E[τ]": 8 / 6, "max τ": 5.0, "max U": 2.0}
    assert lemmas.measured_bounds(rows, horizon=1)["R_b"] == found["R₁"]
    lossy = simulate(WORLD, DelayedPSVI(), Lossy(Constant(0), 1.0), episodes=6, seed=0)
    never = lemmas.measured_bounds(lossy, horizon=3)
    assert (never["E[τ]"], never["max τ"], never["max U"]) == (np.inf, np.inf, 6.0)


def test_of_thinned_rows_only_the_regret_is_measured() -> None:
    every = simulate(WORLD, DelayedPSVI(), Poisson(2), episodes=20, seed=0)
    thinned = simulate(WORLD, DelayedPSVI(), Poisson(2), episodes=20, seed=0, record_every=5)
    found = lemmas.measured_bounds(thinned, horizon=3)
    assert set(found) == {"R₁", "R₂"}
    assert found["R₁"] == lemmas.measured_bounds(every, horizon=3)["R₁"]


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_bounds_says_when_the_run_is_another_problem(tmp_path: Path) -> None:
    world, law, rows = RiverSwim(states=3), Poisson(2), tmp_path / "rows.parquet"
    frame = simulate(world, DelayedPSVI(), law, episodes=40, seed=0, record_every=4)
    about = {"environment": world.describe(), "delay": law.to_dict(), "episodes": 40, "record_every": 4}
    rows.write_bytes(to_parquet(frame, about))
    same = call("bounds", "-d", 6, "-H", 20, "-K", 40, "--delay", "poisson:mean=2", "--run", rows)
    assert same.exit_code == 0, same.output
    assert "Measured" in same.output
    assert f"{frame['regret'][-1]:,.4g}" in same.output
    assert "note:" not in same.output
    other = call("bounds", "-d", 5, "-H", 10, "-K", 50, "--delay", "geometric:mean=2", "--run", rows)
    assert other.exit_code == 0, other.output
    note = f"whose d is 6, not 5; H is 20, not 10; K is 40, not 50; delay is {law.label}, not {Geometric(2).label}"
    assert note in other.output
    about["environment"] = {"tables": "0" * 64}  # built from arrays: nothing is known of its sizes
    rows.write_bytes(to_parquet(frame, about))
    unnamed = call("bounds", "-d", 5, "-H", 10, "-K", 40, "--delay", "poisson:mean=2", "--run", rows)
    assert "note:" not in unnamed.output


def test_bounds_refuses_the_results_of_many_runs(tmp_path: Path) -> None:
    labels = {"environment": "world", "agent": "psvi", "delay_law": "at once", "seed": 0}
    rows = simulate(WORLD, DelayedPSVI(), Constant(0), episodes=3, seed=0)
    Results(rows.with_columns(**{name: pl.lit(label) for name, label in labels.items()})).save(
        tmp_path / "results.parquet"
    )
    refused = call("bounds", "-d", 2, "-H", 3, "-K", 3, "--run", tmp_path / "results.parquet")
    assert refused.exit_code == 2
    assert "--run must be the rows of one run, got" in refused.stderr


PART = Part(
    [
        Check("Optimism", "Q − Q* ≥ 0", "M = 9", 0.0, 1.5, 1.0, 0.95, applies=True),
        Check("Optimism", "Q − Q* ≥ 0", "M = 2", 0.0, -1.25, 0.5, 0.95, applies=False),
    ],
    [
        Curve("M = 2: runs", np.array([1.0, 20.0]), np.array([0.0, 0.5])),
        Curve("M = 9: runs", np.array([1.0, 20.0]), np.array([1.0, 1.0])),
        Curve("M = 9: single action values", np.array([1.0, 20.0]), np.array([1.0, 1.0])),
        Curve("promised: runs", np.array([1.0, 20.0]), np.array([0.95, 0.95]), dashed=True),
    ],
)


def test_the_command_prints_and_writes_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"widths": lambda: PART, "covariance": lambda: Part([], PART.curves[:1])}
    monkeypatch.setattr(report, "PARTS", parts)
    result = call("lemmas", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    for sentence in (
        "Of 1 claims with the settings they are proved for, 1 hold as often as promised.",
        "Not promised, and not so: optimism with M = 2.",
        "With M = 2 no width up to 20 makes all runs optimistic throughout.",
        "With M = 9 all runs are optimistic throughout from a width of 1 on; the theorem asks for 20.",
    ):
        assert sentence in result.output
    table = (tmp_path / "tables" / "lemmas.md").read_text(encoding="utf-8")
    assert "| Optimism | Q − Q\\* ≥ 0 | M = 9 | 0 | 1.5 | 100.0% | 95.0% | yes |" in table
    assert "| Optimism \\* | Q − Q\\* ≥ 0 | M = 2 | 0 | −1.25 | 50.0% | 95.0% | no |" in table
    assert (tmp_path / "figures" / "lemmas-widths.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "index.html").is_file()


def rows_of(part: Part) -> list[str]:
    """Return the rows of the table in which the documentation shows `part`."""
    return [line for line in table_markdown(report.lemmas_table(part.checks)).splitlines() if "| yes |" in line]


def test_a_claim_that_should_hold_and_does_not_is_told_apart() -> None:
    broken = Check("Theorem 1", "regret ≤ its bound", "M = 9", 1.0, 2.0, 0.0, 0.9, applies=True)
    (first, second) = report.summary([broken], {})
    assert first == "Of 1 claims with the settings they are proved for, 0 hold as often as promised."
    assert second == "Promised, and not so: theorem 1 with M = 9."


def test_bounds_that_cannot_fail_are_called_so() -> None:
    worst = lemmas.MEDIUM.horizon * lemmas.EPISODES
    for bound, empty in ((worst + 1.0, True), (worst - 1.0, False)):
        part = Part(
            [Check("Theorem 1", "regret ≤ its bound", "M = 9", bound, 2.0, 1.0, 0.9, applies=True)], PART.curves
        )
        assert report.summary(part.checks, {"regret": part})[-1].endswith("none of them could fail.") == empty


@pytest.mark.parametrize("part", [lemmas.lateness, lemmas.covariance])
def test_the_page_shows_what_the_study_finds(part: Any) -> None:
    found = part()
    assert all(each.holds for each in found.checks)
    page = PAGE.read_text(encoding="utf-8")
    for line in rows_of(found):
        assert line in page


def test_every_practical_claim_of_the_page_is_marked() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("| no |") == len([line for line in page.splitlines() if line.startswith("| Optimism \\*")])
