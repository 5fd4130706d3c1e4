"""What the machine can do, and how near to it an episode comes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from belated.algorithms.regression import cache_aligned
from belated.bench.kernels import matrix_vector_many, normals_many
from belated.bench.measure import Measure, duration, interleaved, ratios, stopwatch
from belated.bench.problems import AGENT, Effort, medium, small
from belated.bench.scene import Scene, agent_episodes, make_scene, whole_episode
from belated.environments import FiniteMDP
from belated.rng import stream
from belated.types import Problem

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
        timers = [_matrix_vector_timer(shape, effort.least_seconds) for shape in shapes.values()]
        product = stopwatch(lambda count: [a @ b for _ in range(count)], effort.least_seconds)
        *products, normal, full = interleaved(effort.repeats, *timers, _normal_timer(effort.least_seconds), product)
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
        Measure("normal numbers in a kernel", tuple(1e-6 / value for value in normal), unit="M/s"),
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
    shape = _table_shape(world.problem)
    flops, numbers = psvi_flops(scene), psvi_normals(scene)
    least_seconds = effort.least_seconds / 4  # shorter and more often: both sides then meet the same speeds of the core
    with threadpool_limits(1):
        product, normal, agent, whole = interleaved(
            4 * effort.repeats,
            _matrix_vector_timer(shape, least_seconds),
            _normal_timer(least_seconds),
            stopwatch(agent_episodes(scene), least_seconds),
            lambda: whole_episode(world, AGENT, episodes),
        )
    # a matrix–vector product does two operations for each of its S·A·d entries
    each = np.array(product) / (2 * shape[0] * shape[1])
    least = flops * each + numbers * np.array(normal)
    least_whole = least + value_flops(world) * each
    note = "; with rollout and recording, which the floor leaves out"
    return [
        Measure(
            f"Delayed-PSVI over the floor, whole episode, {name}",
            ratios(whole, least_whole.tolist()),
            target="≤ 1.6",
            note=f"{duration(float(np.median(whole)))} over {duration(float(np.median(least_whole)))}{note}",
        ),
        Measure(
            f"Delayed-PSVI over the floor, plan and learn, {name}",
            ratios(agent, least.tolist()),
            target="≤ 1.6",
            note=f"{duration(float(np.median(agent)))} over {duration(float(np.median(least)))}",
        ),
    ]


def psvi_flops(scene: Scene) -> float:
    """Count the floating-point operations of an episode of Delayed-PSVI: update, draw and action values.

    An addition, a multiplication, a division, a root and the larger of two numbers are one operation each.
    """
    problem, draws = scene.agent.problem, scene.agent.record.draws
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
    return int(problem.horizon * scene.agent.record.draws * problem.dimension)


def _table_shape(problem: Problem) -> tuple[int, int]:
    return problem.dimension, problem.states * problem.actions


def _matrix_vector_timer(shape: tuple[int, int], least_seconds: float) -> Callable[[], float]:
    rng = stream(0, "bench")
    matrix, x, y = cache_aligned(*shape), rng.standard_normal(shape[0]), cache_aligned(shape[1])
    matrix[:] = rng.standard_normal(shape)
    return stopwatch(lambda count: matrix_vector_many(matrix, x, y, count), least_seconds)


def _normal_timer(least_seconds: float) -> Callable[[], float]:
    """Return seconds per number."""
    rng, out = stream(0, "bench"), np.zeros(_NUMBERS)
    timer = stopwatch(lambda count: normals_many(rng, out, count), least_seconds)
    return lambda: timer() / _NUMBERS
