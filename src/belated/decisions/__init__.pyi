"""Written by tools/exports.py: which name comes from where."""

from ._beliefs import Arrival as Arrival
from ._engine import Batch as Batch
from ._engine import commit as commit
from ._evaluation import Evaluation as Evaluation
from ._evaluation import always as always
from ._evaluation import evaluate as evaluate
from ._evaluation import uniform as uniform
from ._intervals import Estimate as Estimate
from ._learner import DecisionLearner as DecisionLearner
from ._model import Model as Model
from ._operations import Activate as Activate
from ._operations import Cancel as Cancel
from ._operations import Choice as Choice
from ._operations import ClockError as ClockError
from ._operations import ConflictError as ConflictError
from ._operations import Decide as Decide
from ._operations import Decided as Decided
from ._operations import Decision as Decision
from ._operations import DecisionState as DecisionState
from ._operations import End as End
from ._operations import Entry as Entry
from ._operations import Event as Event
from ._operations import ForgottenError as ForgottenError
from ._operations import Outcome as Outcome
from ._operations import PosteriorError as PosteriorError
from ._operations import Reward as Reward
from ._operations import SessionEntry as SessionEntry
from ._operations import SessionState as SessionState
from ._operations import Signal as Signal
from ._operations import StateError as StateError
from ._operations import Status as Status
from ._operations import StoreError as StoreError
from ._operations import StoreFullError as StoreFullError
from ._replay import replay as replay
from ._replay import replay_sessions as replay_sessions
from ._served import Served as Served
from ._session_evaluation import SessionEvaluation as SessionEvaluation
from ._session_evaluation import evaluate_sessions as evaluate_sessions
from ._session_evaluation import sessions_in as sessions_in
from ._session_settings import SessionSettings as SessionSettings
from ._settings import Forgetting as Forgetting
from ._settings import ModelSettings as ModelSettings
from ._silence import ByAge as ByAge
from ._silence import DefaultAfter as DefaultAfter
from ._silence import Mature as Mature
from ._silence import Unknown as Unknown
from ._store.base import Store as Store
from ._store.memory import MemoryStore as MemoryStore
from ._store.postgres import PostgresStore as PostgresStore
from ._store.sqlite import SQLiteStore as SQLiteStore

__all__ = [
    "Activate",
    "Arrival",
    "Batch",
    "ByAge",
    "Cancel",
    "Choice",
    "ClockError",
    "ConflictError",
    "Decide",
    "Decided",
    "Decision",
    "DecisionLearner",
    "DecisionState",
    "DefaultAfter",
    "End",
    "Entry",
    "Estimate",
    "Evaluation",
    "Event",
    "Forgetting",
    "ForgottenError",
    "Mature",
    "MemoryStore",
    "Model",
    "ModelSettings",
    "Outcome",
    "PosteriorError",
    "PostgresStore",
    "Reward",
    "SQLiteStore",
    "Served",
    "SessionEntry",
    "SessionEvaluation",
    "SessionSettings",
    "SessionState",
    "Signal",
    "StateError",
    "Status",
    "Store",
    "StoreError",
    "StoreFullError",
    "Unknown",
    "always",
    "commit",
    "evaluate",
    "evaluate_sessions",
    "replay",
    "replay_sessions",
    "sessions_in",
    "uniform",
]
