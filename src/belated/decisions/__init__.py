"""Decisions now, rewards later: contextual bandits with Thompson sampling whose rewards come whenever they come.

`DecisionLearner` is the simple interface, in one process. `Model` has named actions, contexts as JSON and a durable
log; it is what the service runs. Both keep a `State` (see `_core`) that two functions without side effects advance:
`step` turns operations into rows of the log and answers, `apply` brings a row into the state. Around them are the
*ledger*, which counts the events of one decision, the *posterior*, exact sums that are independent of order and can be
corrected and taken back, and the *store*, an append-only log from which all else can be computed again.
"""

from belated.decisions._engine import Batch, commit
from belated.decisions._learner import DecisionLearner
from belated.decisions._model import Model
from belated.decisions._operations import (
    Activate,
    Cancel,
    Choice,
    ConflictError,
    Decide,
    Decided,
    Decision,
    DecisionState,
    Entry,
    Event,
    ForgottenError,
    Outcome,
    Reward,
    Status,
    StoreError,
    StoreFullError,
)
from belated.decisions._settings import Forgetting, ModelSettings
from belated.decisions._silence import DefaultAfter, Mature, Unknown
from belated.decisions._store import MemoryStore, SQLiteStore, Store

__all__ = [
    "Activate",
    "Batch",
    "Cancel",
    "Choice",
    "ConflictError",
    "Decide",
    "Decided",
    "Decision",
    "DecisionLearner",
    "DecisionState",
    "DefaultAfter",
    "Entry",
    "Event",
    "Forgetting",
    "ForgottenError",
    "Mature",
    "MemoryStore",
    "Model",
    "ModelSettings",
    "Outcome",
    "Reward",
    "SQLiteStore",
    "Status",
    "Store",
    "StoreError",
    "StoreFullError",
    "Unknown",
    "commit",
]
