"""What the report says about its own reading of the paper."""

from __future__ import annotations

from belated_studies.reports.document import Section

DEPARTURES = (
    "Returns are exact values of the policies played, by backward induction, not sampled returns: no rollout noise.",
    "Ties in the argmax are broken uniformly at random. Breaking them by first index would hand every agent action "
    "0, which is the optimal one in the synthetic MDP, before any feedback.",
    "Feedback of episode k with delay τ is used from episode k + τ + 1 on, as the indicator in the algorithms says; "
    "the prose is one off.",
    "A chain makes exactly N noisy gradient steps; the printed loop makes N − 1.",
    "“Upon convergence” is the mean over the last tenth of episodes; “episodes to the highest expected return” is the "
    "first episode at which the 50-episode moving average of the mean value reaches 99 % of its own maximum. "
    "The paper defines neither.",
    "5000 episodes: the paper does not give their number, and its table needs 3694.",
)

CONTRADICTIONS = (
    "Table 2 is said to correspond to Figure 1, but Figure 1 has |A| = 50 and Table 2 |A| = 20; the Poisson column of "
    "Table 2 is indeed the |S||A| = 40 column of Table 4, number by number. Both sizes are played.",
    "The reward of the synthetic MDP: the main text pays 0.99 only at (s = 0, a = 0), the appendix's δ also at "
    "(s = 1, a ≠ 0), where the optimum would be 19.8. Only the main text gives the published 11.96; it is played.",
    "Features are assumed to have norm at most 1, but the published ones have norm up to 3. They are played raw.",
    "“Pareto, scale 500” may mean a least delay of 500 (classical) or of 0 (Lomax). Both are reported.",
    "N is called polylogarithmic, but the theorem's N contains the condition number of Ω, which grows with the data. "
    "With N = 40 a plain chain hardly moves in directions that were rarely visited.",
    "The stated cost O((N + d)MHK) counts a gradient step as O(1); it is O(d²).",
    "RiverSwim's transition probabilities and start are not given: right succeeds with 0.35 and slips back with 0.05, "
    "the start is the left end.",
)


def departures() -> Section:
    """Return the list of departures and contradictions."""
    return Section(
        id="departures",
        title="Departures and contradictions",
        paragraphs=[
            "**Departures from the paper.**",
            *(f"{number}. {text}" for number, text in enumerate(DEPARTURES, 1)),
            "**Contradictions in it, and how they are resolved.**",
            *(f"{number}. {text}" for number, text in enumerate(CONTRADICTIONS, 1)),
        ],
    )
