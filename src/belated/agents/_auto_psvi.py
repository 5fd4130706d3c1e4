"""Posterior sampling value iteration without anything to tune."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from belated._util.validate import flag, integer, real, refuse
from belated.agents import _invariants as invariants
from belated.agents._auto.changes import are_counts
from belated.agents._auto.counts import AutoTableRecord, Tables, make_table_record
from belated.agents._auto.dense import AutoLinearRecord, Regressions, make_linear_record
from belated.agents._auto.rule import Returns, Rule, make_rule
from belated.agents._auto.sparse import AutoSparseAgent
from belated.agents._base import CompiledSettings
from belated.errors import InvalidInputError
from belated.types import Plays, Problem, Savable, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """Parts of `AutoPSVI` to leave out or to change, to see what they are for. None of them is meant to be tuned."""

    shared: bool | None = None
    """Whether all steps share one regression; None if the problem says so."""
    hurried: bool = True
    """Whether values are discounted by 1 − H⁻², so that of equal returns the one that comes sooner is taken."""
    optimistic: bool = True
    """Whether the prior mean is the largest return that is possible; if not, it is 0."""
    ridge: float | None = None
    """λ, for features whose largest norm is 1; None for H⁻³."""
    residual: float = 0.3
    """The width of the draws, as a part of the root mean square of the residuals."""
    hidden: float = 0.3
    """The width that the fit hides, as a part of the range of one reward."""
    weighted: bool = True
    """Whether what the fit hides depends on p̂, the part of the pairs whose outcomes are random; if not, p̂ is 1."""
    slab: float = 1.0
    """The width of a choice, as a part of the range of one reward, where outcomes were all equal and a plan takes them
    to be random after all."""
    rarity: float = 1.0
    """ρ, by which the draws of a table widen for actions that were tried less than the others of a state."""
    capped: bool = True
    """Whether the width that the fit hides is capped by the residuals, on regressions."""
    forgetting: bool = True
    """Whether a table forgets rewards once they are known to change."""
    timed: bool = True
    """Whether a table whose steps share a regression notices that rewards depend on the step."""
    prior: float = 0.1
    """The width of what was never tried, as a part of the range of the return."""
    rows: int = 2**17
    """How many different transitions are kept at most in a simulator: a uniform sample of all."""

    def __post_init__(self) -> None:
        if self.shared is not None:
            flag("shared", self.shared)
        flag("hurried", self.hurried)
        flag("optimistic", self.optimistic)
        if self.ridge is not None:
            real("ridge", self.ridge, above=0)
        real("residual", self.residual, at_least=0)
        real("hidden", self.hidden, at_least=0)
        flag("weighted", self.weighted)
        real("slab", self.slab, at_least=0)
        real("rarity", self.rarity, at_least=0)
        flag("capped", self.capped)
        flag("forgetting", self.forgetting)
        flag("timed", self.timed)
        real("prior", self.prior, at_least=0)
        integer("rows", self.rows, at_least=1)


@dataclass(frozen=True, kw_only=True)
class AutoPSVI(CompiledSettings):
    """Posterior sampling with late feedback, the same for every problem: nothing has to be chosen.

    It plans backwards as Delayed-PSVI does, with one draw a step, but takes from the problem and from the data what
    Delayed-PSVI takes from its user:

    * steps share one regression where dynamics and rewards do not depend on the step;
    * the prior mean of an action value is the largest return that is possible, or where the range of rewards is not
      stated the largest seen, so what has not been tried looks as good as it can be, and λ = H⁻³ lets data outweigh it
      at once;
    * the width of the draws is a part of what the regression leaves unexplained, and a little more where little is
      known and outcomes may be random; in a table it is wider for actions that were tried less than the others;
    * of equal returns the one that comes sooner is preferred, by a discount of 1 − H⁻²;
    * a table whose rewards depend on the step by more than chance allows learns a line for them;
    * a table whose rewards have changed by more than chance allows forgets them from then on.

    docs/math/auto-psvi.md derives the parts. An `Ablation` leaves one of them out.

    Examples
    --------
    >>> import numpy as np
    >>> from belated import RiverSwim
    >>> agent = AutoPSVI().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "auto-psvi"
    whole_episodes: ClassVar[bool] = False
    discounts: ClassVar[bool] = True
    plays: ClassVar[Plays] = "features"
    chooses_features: ClassVar[bool] = True

    ablation: Ablation = Ablation()
    """What is left out; nothing, unless you want to see what a part is for."""

    def __post_init__(self) -> None:
        if not isinstance(self.ablation, Ablation):
            raise refuse("ablation", self.ablation, "an Ablation")

    def to_dict(self) -> dict[str, Any]:
        left_out = {
            each.name: getattr(self.ablation, each.name)
            for each in fields(Ablation)
            if getattr(self.ablation, each.name) != each.default
        }
        return {"algorithm": self.kind, **({"ablation": left_out} if left_out else {})}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        left_out = values.get("ablation", Ablation())
        if isinstance(left_out, Mapping):
            unknown = sorted(set(left_out) - {each.name for each in fields(Ablation)})
            if unknown:
                listed = ", ".join(each.name for each in fields(Ablation))
                raise InvalidInputError(f"ablation has no setting {unknown[0]!r}; its settings are: {listed}")
            left_out = Ablation(**left_out)
        return super().from_dict({**values, "ablation": left_out})

    def rule(
        self,
        problem: Problem,
        reward_range: tuple[float, float],
        returns: Returns | None = None,
        horizon: int | None = None,
    ) -> Rule:
        """Return the rule in numbers; `returns` are those seen so far, where the range of rewards is learned.

        `horizon` is how many steps are planned, if not all.
        """
        if not all(math.isfinite(bound) for bound in reward_range):
            raise refuse("problem.reward_range", reward_range, "finite: the prior of AutoPSVI is the largest return")
        return make_rule(
            problem.horizon if horizon is None else horizon,
            reward_range,
            discount=problem.discount,
            returns=returns,
            hurried=bool(self.ablation.hurried),
            optimistic=bool(self.ablation.optimistic),
            ridge=None if self.ablation.ridge is None else float(self.ablation.ridge),
            residual=float(self.ablation.residual),
            hidden=float(self.ablation.hidden),
            slab=float(self.ablation.slab),
            rarity=float(self.ablation.rarity),
            capped=bool(self.ablation.capped),
            prior=float(self.ablation.prior),
            weighted=bool(self.ablation.weighted),
            forgetting=bool(self.ablation.forgetting),
            timed=bool(self.ablation.timed),
        )

    def record(self, problem: TableProblem) -> AutoTableRecord | AutoLinearRecord:
        """Return the record of an agent that has seen nothing yet: counts where the features are one-hot."""
        rule = self.rule(problem, problem.reward_range)
        shared = problem.homogeneous if self.ablation.shared is None else self.ablation.shared
        slots = 1 if shared else problem.horizon
        if is_one_hot(problem):
            return make_table_record(problem, rule, slots)
        return make_linear_record(problem, rule, slots)

    def check_learned(self, learned: Tables | Regressions, problem: TableProblem) -> None:
        """Require counts, states that exist, and positive diagonals of the factors."""
        invariants.counts("visits", learned.visits)
        invariants.counts("outcomes", learned.outcomes)
        invariants.within("kinds", learned.kinds, problem.states + 2)
        if isinstance(learned, Tables):
            invariants.within("after", learned.after, problem.states + 1)
            invariants.counts("often", learned.often)
            invariants.within("seen", learned.seen, 2)
            invariants.within("random", learned.random, 2)
            invariants.within("changed", learned.changed, 2)
            invariants.require(are_counts(learned.known), "known", "hold counts, and no more late rewards than rewards")
            return
        invariants.counts("rewarded", learned.rewarded)
        invariants.counts("weighed", learned.weighed)
        invariants.require(bool((learned.leverage >= 0.0).all()), "leverage", "not be negative")
        invariants.factor("factor", learned.factor)
        invariants.factor("hidden_factor", learned.hidden_factor)

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        return AutoSparseAgent(self, problem)


def is_one_hot(problem: TableProblem) -> bool:
    """Whether every pair has a feature of its own.

    >>> from belated import RiverSwim, SyntheticLinearMDP
    >>> is_one_hot(RiverSwim().problem), is_one_hot(SyntheticLinearMDP().problem)
    (True, False)
    """
    rows = problem.features.reshape(-1, problem.dimension)
    if len(rows) > problem.dimension:
        return False
    one = rows == 1.0
    alone = one.sum(axis=1) == 1, (rows != 0.0).sum(axis=1) == 1, one.sum(axis=0) <= 1
    return all(bool(each.all()) for each in alone)
