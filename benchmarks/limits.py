"""What the machine can do, and how near to it an episode comes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents._regression import cache_aligned
from belated.environments import FiniteMDP
from belated.types import TableProblem
from belated_studies.timing import stopwatch
from benchmarks.kernels import matrix_vector_many, normals_many
from benchmarks.measure import Measure, at_most, interleaved, median_duration, ratios
from benchmarks.problems import AGENT, Effort, medium, small
from benchmarks.scene import Scene, agent_episodes, make_scene, whole_episode

_NUMBERS = 1024  # normal numbers a call: they stay in the nearest cache


def machine(effort: Effort) -> list[Measure]:
    """Bandwidth of matrix–vector products, normal numbers per second, and speed of matrix products, on one core."""
    size = effort.dimension
    shapes = {
        "small problem's table": _table_shape(small().problem),
        "medium problem's table": _table_shape(medium().problem),
        "large d": (size, size),
    }
    a, b = stream(0, "bench").standard_normal((2, 512, 512))
    with threadpool_limits(1):
        *products, theirs, ours, full = interleaved(
            effort.repeats,
            *(_matrix_vector_timer(shape, effort.least_seconds) for shape in shapes.values()),
            _numpy_normal_timer(effort.least_seconds),
            _normal_timer(effort.least_seconds),
            stopwatch(lambda count: [a @ b for _ in range(count)], effort.least_seconds),
        )
    bandwidths = [
        Measure(
            f"matrix–vector product, {name}",
            tuple(8e-9 * shape[0] * shape[1] / value for value in taken),
            unit="GB/s",
            note=f"{shape[0]} × {shape[1]} doubles",
        )
        for (name, shape), taken in zip(shapes.items(), products, strict=True)
    ]
    return [
        *bandwidths,
        Measure("normal numbers of NumPy", tuple(1e-6 / value for value in theirs), unit="M/s"),
        Measure("normal numbers in a kernel", tuple(1e-6 / value for value in ours), unit="M/s", note="the same ones"),
        Measure("matrix product (BLAS)", tuple(2e-9 * 512**3 / value for value in full), unit="GF/s", note="512 × 512"),
    ]


def floor(effort: Effort) -> list[Measure]:
    """Time of an episode over the least that its arithmetic would take at the measured limits, both on one core."""
    return [
        *_over_floor("small problem", small(), 4096, effort),
        *_over_floor("medium problem", medium(), 256, effort),
    ]


def _over_floor(name: str, world: FiniteMDP, episodes: int, effort: Effort) -> list[Measure]:
    scene = make_scene(world, AGENT)
    flops, numbers = psvi_flops(scene), psvi_normals(scene)
    table, square = _table_shape(world.problem), (effort.dimension, effort.dimension)
    least_seconds = effort.least_seconds / 4  # shorter and more often: both sides then meet the same speeds of the core
    with threadpool_limits(1):
        agent, whole, *limits = interleaved(
            4 * effort.repeats,
            stopwatch(agent_episodes(scene), least_seconds),
            lambda: whole_episode(world, AGENT, episodes),
            _matrix_vector_timer(square, least_seconds),
            _numpy_normal_timer(least_seconds),
            _matrix_vector_timer(table, least_seconds),
            _normal_timer(least_seconds),
        )
    large, theirs, own, ours = (np.array(each) for each in limits)
    found = []
    for kind, target, (rows, columns), product, normal in (
        ("", at_most(1.6), square, large, theirs),
        (" of its own cache", None, table, own, ours),
    ):
        each = product / (2 * rows * columns)  # two operations for every entry of the matrix
        for part, taken, operations in (
            ("whole episode", whole, flops + value_flops(world)),
            ("plan and learn", agent, flops),
        ):
            least = operations * each + numbers * normal
            found.append(
                Measure(
                    f"Delayed-PSVI over the floor{kind}, {part}, {name}",
                    ratios(taken, least.tolist()),
                    target=target,
                    less_is_better=True,
                    note=f"{median_duration(taken)} over {median_duration(least.tolist())}",
                )
            )
    return found


def psvi_flops(scene: Scene) -> float:
    """Count the floating-point operations of an episode of Delayed-PSVI: update, draw and action values.

    An addition, a multiplication, a division, a root and the larger of two numbers are one operation each.
    """
    problem, draws = scene.agent.problem, len(scene.agent.record.drawn)
    d, states, pairs = problem.dimension, problem.states, problem.states * problem.actions
    visited = problem.features[scene.states[:, :-1], scene.actions]
    # A rotation of row k against φ is needed from the first entry of φ that is not zero on, of which n are left:
    # n(n − 1)/2 entries to the right of the diagonal with 5 operations each, and 10 for the angle and the diagonal.
    left = (d - np.argmax(visited != 0.0, axis=-1)).astype(np.float64)
    update = float(np.mean(2.5 * left * (left - 1) + 10 * left))
    moments = 5 * d  # φ/σ for the update; φ/σ², with it Σφr/σ², and C[s']
    target = 2 * states * d  # Σ_{s'} C[s']·V(s')
    solves = (1 + draws) * d * d  # U⁻ᵀ once and U⁻¹ for each draw: d(d − 1) operations, and d for the diagonal
    noise = 2 * draws * d  # u + νz
    values = draws * 2 * pairs * d  # φᵀw of every pair, for each draw
    largest = draws * pairs + states  # the largest over draws and actions, and the cap
    return float(problem.horizon * (update + moments + target + solves + noise + values + largest))


def value_flops(world: FiniteMDP) -> int:
    """Count the floating-point operations of the exact value of a policy: r + Σ_{s'} P(s')·V(s') of every state."""
    return int(world.horizon * world.states * 2 * world.world.transitions.shape[3])


def psvi_normals(scene: Scene) -> int:
    """Count the normal numbers of an episode of Delayed-PSVI."""
    problem = scene.agent.problem
    return int(problem.horizon * len(scene.agent.record.drawn) * problem.dimension)


def _table_shape(problem: TableProblem) -> tuple[int, int]:
    return problem.dimension, problem.states * problem.actions


def _matrix_vector_timer(shape: tuple[int, int], least_seconds: float) -> Callable[[], float]:
    rng = stream(0, "bench")
    matrix, x, y = cache_aligned(*shape), rng.standard_normal(shape[0]), cache_aligned(shape[1])
    matrix[:] = rng.standard_normal(shape)
    return stopwatch(lambda count: matrix_vector_many(matrix, x, y, count), least_seconds)


def _normal_timer(least_seconds: float) -> Callable[[], float]:
    """Return seconds per number in a kernel."""
    rng, out = stream(0, "bench"), np.zeros(_NUMBERS)
    timer = stopwatch(lambda count: normals_many(rng, out, count), least_seconds)
    return lambda: timer() / _NUMBERS


def _numpy_normal_timer(least_seconds: float) -> Callable[[], float]:
    """Return seconds per number of NumPy's generator, where it is fastest: filling an array."""
    rng, out = stream(0, "bench"), np.zeros(_NUMBERS)
    timer = stopwatch(lambda count: [rng.standard_normal(out=out) for _ in range(count)], least_seconds)
    return lambda: timer() / _NUMBERS
