"""Posterior sampling value iteration without tuning parameters."""

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
    """Switches and constants of `AutoPSVI` for ablation studies. None of them is meant to be tuned."""

    shared: bool | None = None
    """Whether all steps share one regression; None to decide by the problem."""
    hurried: bool = True
    """Whether values are discounted by 1 − H⁻², so that of equal returns the earlier one is preferred."""
    optimistic: bool = True
    """Whether the prior mean is the maximum possible return; if not, it is 0."""
    ridge: float | None = None
    """λ, for features with maximum norm 1; None for H⁻³."""
    residual: float = 0.3
    """The width of the draws, relative to the root mean square of the residuals."""
    hidden: float = 0.3
    """The width that the fit hides, relative to the range of one reward."""
    weighted: bool = True
    """Whether the hidden width depends on p̂, the fraction of pairs with random outcomes; if not, p̂ is 1."""
    slab: float = 1.0
    """The width of a choice, relative to the range of one reward, for pairs whose outcomes were all equal and which a
    plan nevertheless treats as random."""
    rarity: float = 1.0
    """ρ, how much the draws of a table widen for actions that were tried less often than the others of a state."""
    capped: bool = True
    """Whether the hidden width is capped by the residuals, on regressions."""
    forgetting: bool = True
    """Whether a table forgets rewards once they are found to change."""
    timed: bool = True
    """Whether a table whose steps share a regression tests for rewards that depend on the step."""
    prior: float = 0.1
    """The width of pairs that were never tried, relative to the range of the return."""
    rows: int = 2**17
    """Maximum number of distinct transitions stored in a simulator; beyond, a uniform sample."""

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
    """Posterior sampling with late feedback that adapts to every problem without settings.

    It plans backwards like Delayed-PSVI, with one draw per step, but derives from the problem and the data what
    Delayed-PSVI takes from its user:

    * steps share one regression if dynamics and rewards do not depend on the step;
    * the prior mean of an action value is the maximum possible return, or the maximum seen if the range of rewards is
    unknown, so what has not been tried looks as good as possible, and λ = H⁻³ lets data outweigh it at once;
    * the width of the draws is a fraction of the residuals of the regression, and a little more where little is known
    and outcomes may be random; in a table it is wider for actions that were tried less than the others;
    * of equal returns the earlier one is preferred, by a discount of 1 − H⁻²;
    * a table whose rewards depend significantly on the step fits a line to them;
    * a table whose rewards have changed significantly forgets them from then on.

    docs/math/auto-psvi.md has the derivations. An `Ablation` switches parts off.

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
    """Parts that are switched off, for ablation studies; none by default."""

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
        """Return the rule for a problem; `returns` are those seen so far, if the range of rewards is learned.

        `horizon` is the number of steps to plan, by default all.
        """
        if not all(math.isfinite(bound) for bound in reward_range):
            raise refuse("problem.reward_range", reward_range, "finite: the prior of AutoPSVI is the maximum return")
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
        """Return the record of a new agent: counts if the features are one-hot."""
        rule = self.rule(problem, problem.reward_range)
        shared = problem.homogeneous if self.ablation.shared is None else self.ablation.shared
        slots = 1 if shared else problem.horizon
        if is_one_hot(problem):
            return make_table_record(problem, rule, slots)
        return make_linear_record(problem, rule, slots)

    def check_learned(self, learned: Tables | Regressions, problem: TableProblem) -> None:
        """Require valid counts, existing states, and positive diagonals of the factors."""
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
    """Whether every pair has its own one-hot feature.

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
