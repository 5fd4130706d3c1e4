"""The filter with a fitted prior against the posterior of the textbook."""

from __future__ import annotations

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.runner._trials import ReportQueue
from belated.types import Feedback, Trajectory
from belated_studies.trials import shows
from belated_studies.trials.fitted import FittedByAge

pytestmark = pytest.mark.usefixtures("few_listeners")


def test_the_filter_believes_what_the_textbook_says() -> None:
    """Listeners of two shows, at several moments, against the posterior from all rows that are known, at once."""
    world, settings = shows.trial(2), FittedByAge(per_day=2, ages=4)
    ends = settings.ends(shows.DAYS)
    prior = shows.fitted_prior().at(ends)
    agent, rng, played = settings.start(world.problem), stream(0, "agent"), list[tuple[int, int]]()
    queue = ReportQueue()
    for k in range(90):
        agent.learn([Feedback(*each) for each in queue.arrived(k)])
        arm = agent.plan(rng).act(0, 0)
        played.append((arm, world.draw(0, arm, rng)))
        for delay, amount, _ in world.reports(played[-1][1], k):
            queue.add(k, delay, Trajectory(np.zeros(2, int), np.array([arm]), np.array([amount]), part="rewards"))
    traces = shows.listened()[0].reshape(-1, shows.DAYS)
    edges = np.concatenate([[0], ends])
    record, size = agent.record, ends.size
    for arm in range(world.actions):
        precision, pull = np.linalg.inv(prior.between), np.linalg.solve(prior.between, prior.mean)
        for k, (chosen, listener) in enumerate(played):
            old = int((89 - k >= 2 * ends).sum())  # ages that this play had reached at the last plan
            if chosen == arm and old:
                came = np.array([traces[listener, edges[b] : edges[b + 1]].sum() for b in range(old)])
                seen = np.eye(size)[:old]
                inverse = np.linalg.inv(prior.within[:old, :old])
                precision, pull = precision + seen.T @ inverse @ seen, pull + seen.T @ inverse @ came
        mean, covariance = np.linalg.solve(precision, pull), np.linalg.inv(precision)
        assert record.gains @ record.learned.mean[arm] == pytest.approx(mean.sum())
        assert record.spread[arm] == pytest.approx(np.sqrt(covariance.sum()))


def test_draws_are_as_wide_as_they_are_said_to_be() -> None:
    """Without a width the show with the largest mean is played, and any width below 1 plays it more often than 1."""
    world, rng = shows.trial(2), np.random.default_rng(0)  # of 100 a day, nothing is known of the first 40
    often = []
    for scale in (0.0, 0.2, 1.0):
        agent = FittedByAge(per_day=100, ages=4, scale=scale).start(world.problem)
        agent.record.learned.mean[:] += rng.normal(0.0, 0.1, agent.record.learned.mean.shape)
        best = int(np.argmax(agent.record.learned.mean @ agent.record.gains))
        often.append(sum(agent.plan(stream(k, "agent")).act(0, 0) == best for k in range(40)))
    assert often[0] == 40
    assert often[1] > often[2]
