"""Decisions now, rewards later: contextual bandits with Thompson sampling whose rewards come whenever they come.

`DecisionLearner` is the simple interface, in one process. `Model` has named actions, contexts as JSON and a durable
log; it is what the service runs. Both keep a `State` (see `_core`) that two functions without side effects advance:
`step` turns operations into rows of the log and answers, `apply` brings a row into the state. Around them are the
*ledger*, which counts the events of one decision, the *posterior*, exact sums that are independent of order and can be
corrected and taken back, and the *store*, an append-only log from which all else can be computed again.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
