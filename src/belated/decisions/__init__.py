"""Decisions now, rewards later: a linear bandit with Thompson sampling for use inside an application.

With the features x and the rewards y that have arrived, noise σ and ridge λ, the posterior of the weights is

    Ω = Σ xxᵀ/σ² + λI,   θ̂ = Ω⁻¹ Σ xy/σ².

A decision draws θ¹..θᴹ ~ N(θ̂, ν²Ω⁻¹) and takes the action whose features have the largest max over m of xᵀθᵐ.
Both sums are free of order, and correcting a reward changes only the second: by x(y_new − y_old)/σ², in O(d).
"""

from belated.decisions.learner import DecisionLearner
from belated.decisions.values import ConflictError, Decision, DefaultAfter, Unknown

__all__ = ["ConflictError", "Decision", "DecisionLearner", "DefaultAfter", "Unknown"]
