"""Decisions now, rewards later: contextual bandits with Thompson sampling whose rewards come whenever they come.

`DecisionLearner` is the simple face, in one process. `Model` has named actions, contexts as JSON and a durable log; it
is what the service runs. Both are made of three parts: the *posterior* of a Gaussian linear model, kept as sums that
are free of order and can be corrected and taken back exactly; the *ledger*, pure functions that say what a decision
and its events amount to; and the *store*, an append-only log from which all else can be computed again.
"""

from belated.decisions.engine import commit
from belated.decisions.learner import DecisionLearner
from belated.decisions.model import Model
from belated.decisions.operations import Activate, Cancel, Decide, Reward
from belated.decisions.settings import Forgetting, ModelSettings
from belated.decisions.silence import DefaultAfter, Mature, Unknown
from belated.decisions.store import MemoryStore, SQLiteStore, Store
from belated.decisions.values import (
    Choice,
    ConflictError,
    Decision,
    Entry,
    ForgottenError,
    Outcome,
    State,
    Status,
    StoreError,
    StoreFullError,
)

__all__ = [
    "Activate",
    "Cancel",
    "Choice",
    "ConflictError",
    "Decide",
    "Decision",
    "DecisionLearner",
    "DefaultAfter",
    "Entry",
    "Forgetting",
    "ForgottenError",
    "Mature",
    "MemoryStore",
    "Model",
    "ModelSettings",
    "Outcome",
    "Reward",
    "SQLiteStore",
    "State",
    "Status",
    "Store",
    "StoreError",
    "StoreFullError",
    "Unknown",
    "commit",
]
