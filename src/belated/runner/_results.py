"""The rows of an experiment as one typed object, with statistics, plots and tables."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from belated._util.files import write_atomically
from belated._util.validate import choice, refuse
from belated._util.version import stamp
from belated.errors import DamagedFileError, InvalidInputError
from belated.evaluation import (
    Band,
    bootstrap,
    cumulative_regret,
    gaps,
    interquartile_mean,
    mean_interval,
    upon_convergence,
)
from belated.runner._experiment import MADE_BY
from belated.runner._plots import plot
from belated.runner._store import from_parquet, read_runs, to_parquet
from belated.runner._summary import Summary, compare, comparison_latex, comparison_markdown, to_pandas
from belated.types import Floats, Ints

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

LABELS = ("environment", "agent", "delay_distribution")
Label = str | None
"""A label; None if there is only one."""


class Results:
    """The rows of all runs of an experiment.

    `frame` is a Polars frame with one row per episode: the labels of the run (`environment`, `agent`,
    `delay_distribution`, `seed`) and the columns of `belated.runner.simulate`.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        if not isinstance(frame, pl.DataFrame):
            raise refuse("frame", frame, "a polars DataFrame")
        missing = [name for name in (*LABELS, "seed", "episode", "value") if name not in frame.columns]
        if missing:
            raise InvalidInputError(f"results need the column {missing[0]!r}, got {frame.columns}")
        self.frame = frame

    @property
    def agents(self) -> list[str]:
        """Labels of the agents, in order of appearance."""
        return self._labels("agent")

    @property
    def environments(self) -> list[str]:
        """Labels of the environments."""
        return self._labels("environment")

    @property
    def delays(self) -> list[str]:
        """Labels of the delay distributions."""
        return self._labels("delay_distribution")

    @property
    def episodes(self) -> Ints:
        """The numbers, from 1, of the episodes that have rows: all of them, unless `record_every` was set."""
        return self.frame["episode"].unique().sort().to_numpy().astype(np.int64) + 1

    def has(self, environment: str, delay: str, agent: str) -> bool:
        """Return whether there are rows of this combination."""
        return (environment, agent, delay) in self._parts

    def _labels(self, column: str) -> list[str]:
        return list(dict.fromkeys(part[LABELS.index(column)] for part in self._parts))

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], pl.DataFrame]:
        """The rows of each environment, agent and delay; cached, since studies use them hundreds of times."""
        return dict(self.frame.partition_by(*LABELS, as_dict=True, maintain_order=True))

    def array(self, column: str, *, agent: str, delay: Label = None, environment: Label = None) -> Floats:
        """Return `column` of one agent, shape (seeds, episodes); give delay and environment if there are several."""
        if column not in self.frame.columns:
            choice("column", column, self.frame.columns)
        wanted = {"agent": agent, "delay_distribution": delay, "environment": environment}
        labels = {}
        for name, label in wanted.items():
            known = self._labels(name)
            if label is None and len(known) > 1:
                raise InvalidInputError(f"{name} must be given, since there are several: {', '.join(known)}")
            labels[name] = choice(name, known[0] if label is None else label, known)
        chosen = self._parts.get(tuple(labels[name] for name in LABELS))
        if chosen is None:
            raise InvalidInputError(f"there are no rows of the combination {', '.join(labels.values())}")
        ordered = chosen.sort("seed", "episode", maintain_order=True)
        seeds, rows = ordered["seed"].n_unique(), ordered["episode"].to_numpy()
        first = rows[: len(rows) // seeds]
        if len(rows) % seeds or (rows.reshape(seeds, -1) != first).any() or (np.diff(first) <= 0).any():
            raise InvalidInputError(f"every seed of {', '.join(labels.values())} must have exactly one row per episode")
        return ordered[column].to_numpy().reshape(seeds, -1)

    def regret(self, *, agent: str, delay: Label = None, environment: Label = None) -> Floats:
        """Return cumulative regret (seeds, episodes): Σ V* − V^π, from exact values."""
        if "regret" in self.frame.columns:
            return self.array("regret", agent=agent, delay=delay, environment=environment)
        optimal, value = (
            self.array(column, agent=agent, delay=delay, environment=environment) for column in ("optimal", "value")
        )
        return cumulative_regret(gaps(optimal, value))

    def returns(self, *, agent: str, delay: Label = None, environment: Label = None) -> Floats:
        """Return the observed return of each episode, shape (seeds, episodes)."""
        return self.array("sampled_return", agent=agent, delay=delay, environment=environment)

    def regret_band(self, *, agent: str, delay: Label = None, environment: Label = None) -> Band:
        """Return mean cumulative regret with a pointwise 95 % bootstrap band over seeds."""
        return bootstrap(self.regret(agent=agent, delay=delay, environment=environment))

    def plot_regret(
        self, axes: Axes | None = None, *, environment: Label = None, delay: Label = None, log: str = ""
    ) -> Axes:
        """Draw mean cumulative regret with 95 % bands over seeds on `axes`, or on new ones; return the axes.

        Colours are for agents, with markers from the eighth on, and line styles for delays; with one agent, colours are
        for delays. Give the `environment` if there are several. `log` names the logarithmic axes: "x", "y" or "xy".
        Needs Matplotlib: `pip install 'belated[plots]'`.

        >>> from belated import DelayedPSVI, Poisson, RandomPolicy, RiverSwim, run
        >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
        >>> results = run(RiverSwim(), agents, Poisson(5), episodes=100, seeds=3, progress=False)
        >>> axes = results.plot_regret()
        >>> axes.get_ylabel(), [line.get_label() for line in axes.lines]
        ('cumulative regret', ['psvi', 'random'])
        """
        return plot(self, "regret", axes, environment=environment, delay=delay, log=log)

    def plot_value(
        self,
        axes: Axes | None = None,
        *,
        environment: Label = None,
        delay: Label = None,
        log: str = "",
        window: int | None = None,
    ) -> Axes:
        """Draw the exact value of the policies played, averaged over `window` rows, and the optimum (dashed)."""
        return plot(self, "value", axes, environment=environment, delay=delay, log=log, window=window)

    def plot_returns(
        self,
        axes: Axes | None = None,
        *,
        environment: Label = None,
        delay: Label = None,
        log: str = "",
        window: int | None = None,
    ) -> Axes:
        """Draw the observed returns, in the same way as `plot_value`."""
        return plot(self, "returns", axes, environment=environment, delay=delay, log=log, window=window)

    def plot_delays(
        self, axes: Axes | None = None, *, environment: Label = None, delay: Label = None, log: str = "x"
    ) -> Axes:
        """Draw the fraction of feedback that arrives within n episodes, for each delay distribution, with 95 % bands.

        Feedback that never arrives keeps a curve below 1.
        """
        return plot(self, "delays", axes, environment=environment, delay=delay, log=log)

    def summary(self) -> Summary:
        """Return one row per environment, delay and agent: regret, value upon convergence, return, with 95 % intervals.

        It is a Polars frame that prints its main columns:

        >>> from belated import DelayedPSVI, Poisson, RandomPolicy, RiverSwim, run
        >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
        >>> results = run(RiverSwim(), agents, Poisson(5), episodes=100, seeds=3, progress=False)
        >>> print(results.summary())
        riverswim-5, poisson-5
        <BLANKLINE>
         agent              regret              value   share
        ...
        """
        rows = [
            {
                "environment": environment,
                "delay_distribution": delay,
                "agent": agent,
                **self._summarised({"agent": agent, "delay": delay, "environment": environment}),
            }
            for environment in self.environments
            for delay in self.delays
            for agent in self.agents
            if self.has(environment, delay, agent)
        ]
        return Summary(rows)

    def _summarised(self, pick: dict[str, str]) -> dict[str, Any]:
        """Return the numbers of one row of the summary; unknown values and regrets are null."""
        values = self.array("value", **pick)
        found: dict[str, Any] = {}
        if np.isnan(values).any():
            unknown = ("regret", "regret_low", "regret_high", "value", "value_low", "value_high", "optimal")
            found |= dict.fromkeys(unknown)
        else:
            value, total = upon_convergence(values).estimate, mean_interval(self.regret(**pick)[:, -1])
            found |= {"regret": total.value, "regret_low": total.low, "regret_high": total.high}
            found |= {"value": value.value, "value_low": value.low, "value_high": value.high}
            found["optimal"] = float(np.mean(self.array("optimal", **pick)))
        if "sampled_return" in self.frame.columns:
            returns = self.returns(**pick)
            mean = upon_convergence(returns).estimate
            last = max(1, round(0.1 * returns.shape[1]))
            middle = interquartile_mean(returns[:, -last:].mean(axis=1, keepdims=True))
            found |= {"return": mean.value, "return_low": mean.low, "return_high": mean.high}
            found |= {"return_iqm": middle.value, "return_iqm_low": middle.low, "return_iqm_high": middle.high}
        return {**found, "seeds": len(values)}

    def to_markdown(self, measure: str = "regret") -> str:
        """Return a Markdown table of mean ± error: one row per agent, one column per task, the best in bold.

        A task is an environment under a delay distribution. `measure` is "regret", "value", "return" or "return_iqm",
        a column of `summary()`; the error is half of its 95 % interval over seeds. Labels are escaped.

        >>> from belated import Constant, DelayedPSVI, Poisson, RandomPolicy, RiverSwim, run
        >>> agents = {"psvi": DelayedPSVI(), "by_chance": RandomPolicy()}
        >>> results = run(RiverSwim(), agents, [Constant(0), Poisson(5)], episodes=100, seeds=3, progress=False)
        >>> print(results.to_markdown().splitlines()[0])
        | agent | constant-0 | poisson-5 |
        >>> print(results.to_latex().splitlines()[-3])
          by\\_chance & $... \\pm ...$ & $... \\pm ...$ \\\\
        """
        return comparison_markdown(compare(self.summary(), measure))

    def to_latex(self, measure: str = "regret") -> str:
        """Return the table of `to_markdown` as a `tabular` for LaTeX, which needs the package `booktabs`."""
        return comparison_latex(compare(self.summary(), measure))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame; infinite delays and unknown values are nan."""
        return to_pandas(self.frame)

    def to_rliable(self, column: str = "value") -> dict[str, Floats]:
        """Return the scores of each agent, shape (runs, tasks), for `rliable` and `belated.evaluation`.

        A task is an environment under a delay distribution, a run is a seed. All agents must have been played on all
        tasks with the same number of seeds. Scores are comparable between tasks, and larger is better:

        * "value": the mean value over the last tenth of the episodes, as a fraction of the optimum;
        * "regret": 1 − regret / Σ V*, over all episodes: 1 for no regret, 0 for a value of zero;
        * "sampled_return": the mean return over the last tenth of the episodes, not normalised.

        >>> from belated import Constant, DelayedPSVI, Poisson, RandomPolicy, RiverSwim, run
        >>> from belated.evaluation import interquartile_mean
        >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
        >>> results = run(RiverSwim(), agents, [Constant(0), Poisson(5)], episodes=100, seeds=3, progress=False)
        >>> scores = results.to_rliable("regret")
        >>> scores["psvi"].shape, interquartile_mean(scores["random"]).value < 0.1
        ((3, 2), True)
        """
        choice("column", column, ("value", "regret", "sampled_return"))
        tasks = list(dict.fromkeys((part[0], part[2]) for part in self._parts))
        scores = {
            agent: [self._scores(column, {"agent": agent, "delay": d, "environment": e}) for e, d in tasks]
            for agent in self.agents
        }
        seeds = {len(score) for found in scores.values() for score in found}
        if len(seeds) > 1:
            raise InvalidInputError(f"all agents must have the same number of seeds on every task, got {sorted(seeds)}")
        return {agent: np.stack(found, axis=1) for agent, found in scores.items()}

    def _scores(self, column: str, pick: dict[str, str]) -> Floats:
        """Return the score of each seed on one task."""
        rows = self.regret(**pick) if column == "regret" else self.array(column, **pick)
        last = max(1, round(0.1 * rows.shape[1]))
        ends: Floats = rows[:, -last:].mean(axis=1)
        if column == "sampled_return":
            return ends
        optimal = self.array("optimal", **pick)
        if not (np.isfinite(optimal).all() and np.isfinite(rows).all() and optimal.mean() > 0):
            raise InvalidInputError(
                f"{', '.join(pick.values())} has no score: its optimum must be known and positive, "
                f'got {optimal.mean():g}; column="sampled_return" does not need it'
            )
        shares: Floats = 1.0 - rows[:, -1] / (optimal.mean(axis=1) * self.episodes[-1])
        return shares if column == "regret" else ends / optimal[:, -last:].mean(axis=1)

    def save(self, path: str | Path) -> None:
        """Write all rows to one Parquet file."""
        write_atomically(
            Path(path), to_parquet(self.frame, {"format": "belated-results", "version": 1, MADE_BY: stamp()})
        )

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Return the rows of all finished runs in `folder`, as written by `run`, `belated run` or a study.

        The folder is that of an experiment, or contains only one. Rows with different settings under the same label are
        rejected, as are rows from different versions of belated.
        """
        rows = read_runs(Path(folder))
        lengths = {len(frame) for frame in rows}
        if len(lengths) > 1:
            raise InvalidInputError(f"all runs in {folder} must have the same number of rows, got {sorted(lengths)}")
        return cls(pl.concat(rows))

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read what `save` wrote; raise DamagedFileError if the file is damaged or foreign."""
        frame, about = from_parquet(Path(path))
        if about.get("format") != "belated-results":
            raise DamagedFileError(f"{path} has the rows of a single run, not saved results")
        if about.get("version") != 1:
            raise DamagedFileError(f"{path} has version {about.get('version')!r} of results, this code reads version 1")
        return cls(frame)

    def __repr__(self) -> str:
        seeds = self.frame["seed"].n_unique()
        return (
            f"Results(environments={self.environments}, delays={self.delays}, agents={self.agents}, "
            f"seeds={seeds}, rows={self.frame.height})"
        )
