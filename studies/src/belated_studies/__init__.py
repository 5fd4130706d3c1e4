"""Studies: experiments with a report. One folder a study, one file an artefact.

A new study is a package and a line in `STUDIES`; its command comes of itself.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """Where a study is found, and what its command says of it. It is imported when it is asked for."""

    where: str
    """`module:name`."""
    about: str
    out: str
    """The folder that it is written into, unless another is named."""


STUDIES = {
    "paper": Entry(
        "belated_studies.paper:STUDY",
        "Regenerate the paper's figures and tables, beside the published numbers.",
        "report",
    ),
    "systems": Entry(
        "belated_studies.systems:STUDY",
        "Compare every system on common testbeds: bandits, conversions, chains, arbitrary delays, adversaries.",
        "systems",
    ),
    "lemmas": Entry(
        "belated_studies.lemmas:STUDY",
        "Check what the paper's lemmas and theorems claim on small problems, in about a minute.",
        "lemmas",
    ),
    "exploration": Entry(
        "belated_studies.exploration:STUDY",
        "Show the untuned agent beside tuned ones, DQN and PPO, on problems that have to be explored.",
        "exploration",
    ),
}

#: The functions that return a search for settings; the winners are kept in `tuned`.
SEARCHES = {
    "synthetic": "belated_studies.paper.searches:synthetic_search",
    "riverswim": "belated_studies.paper.searches:riverswim_search",
    "linear-bandit": "belated_studies.systems.searches:linear_bandit",
    "conversions": "belated_studies.systems.searches:on_the_fly",
    "waiting": "belated_studies.systems.searches:waiting",
    "chain": "belated_studies.systems.searches:chain",
    "adversarial": "belated_studies.systems.searches:adversarial",
}
