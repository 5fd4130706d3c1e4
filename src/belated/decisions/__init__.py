"""Decisions now, rewards later: contextual bandits with Thompson sampling and delayed rewards.

`DecisionLearner` is the simple interface, for one process. `Model` has named actions, contexts as JSON and a durable
log; it is what the service runs. Both keep a `State` (see `_core`) that is advanced by two functions: `step` turns
operations into rows of the log and answers, `apply` applies a row to the state. Around them are the *ledger*, which
tallies the events of one decision, the *posterior*, computed from exact sums that do not depend on order and can be
corrected, and the *store*, an append-only log from which everything else can be recomputed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
