"""A shop whose visitors go from page to page: what pays at once is not what pays in the end."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from belated._util.validate import integer
from belated.environments._finite import FiniteMDP, full_name

#: The probability of the next page, and that of a click that pays, on each page for each action.
ON = ((0.80, 0.45, 0.25), (0.45, 0.80, 0.25), (0.40, 0.75, 0.45), (0.00, 0.00, 0.00))
PAYS = ((0.05, 0.10, 0.25), (0.05, 0.05, 0.25), (0.05, 0.05, 0.30), (0.20, 0.30, 0.90))
#: The probability of a visitor to stay on a page; the rest leave. After the last page all do.
STAYS = (0.10, 0.10, 0.05)


class ShopFunnel(FiniteMDP):
    """Visits of four pages, with one-hot features: on each an article, a review or an offer is shown.

    Offers pay most at once, and drive visitors away: an article leads on from the first page, reviews from the next
    two, and only on the last page an offer is right. Who has left is in a fifth state, where nothing pays.

    >>> ShopFunnel()
    ShopFunnel('funnel', states=5, actions=3, dimension=15, horizon=6, bernoulli=True)
    >>> ShopFunnel().optimal_value
    0.7381
    """

    PAGES: ClassVar[tuple[str, ...]] = ("home", "list", "product", "checkout", "gone")
    ACTIONS: ClassVar[tuple[str, ...]] = ("article", "review", "offer")

    def __init__(self, horizon: int = 6) -> None:
        pages, actions = len(self.PAGES), len(self.ACTIONS)
        transitions, rewards = np.zeros((pages, actions, pages)), np.zeros((pages, actions))
        transitions[-1, :, -1] = 1.0
        for page in range(pages - 1):
            for action in range(actions):
                stays = STAYS[action] if page < pages - 2 else 0.0
                transitions[page, action, page + 1] += ON[page][action]
                transitions[page, action, page] += stays
                transitions[page, action, -1] += 1.0 - ON[page][action] - stays
                rewards[page, action] = PAYS[page][action]
        horizon = integer("horizon", horizon, at_least=1)
        name = full_name("funnel", f"h{horizon}" if horizon != 6 else "")
        super().__init__(transitions, rewards, horizon=horizon, bernoulli=True, name=name)
        self._specification = {"environment": "funnel", "horizon": self.horizon}
