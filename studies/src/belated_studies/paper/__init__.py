"""The paper, reproduced: every figure and table beside the published numbers, and the studies around them."""

from __future__ import annotations

from belated_studies.paper.claims import claims
from belated_studies.paper.comparing import RULE
from belated_studies.paper.costs import seconds
from belated_studies.paper.departures import departures
from belated_studies.paper.opening import opening
from belated_studies.paper.setting import FULL, PaperSize
from belated_studies.study import Played, Study


def _facts(played: Played[PaperSize]) -> dict[str, str]:
    size = played.size
    return {
        "Seeds": f"0 to {size.seeds - 1} (RiverSwim: 0 to {size.riverswim_seeds - 1})",
        "Episodes": f"{size.episodes}",
    }


def _remarks(played: Played[PaperSize]) -> list[str]:
    size = played.size
    said = [
        "Each result is shown twice: with the paper's printed hyper-parameters (literal), and with the best of one "
        "search of equal size for every agent, on seeds that this report does not use (tuned).",
        RULE,
    ]
    if size.episodes < FULL.episodes or size.seeds < FULL.seeds:
        said.append(
            f"This is smaller than the paper: {size.seeds} seeds and {size.episodes} episodes instead of {FULL.seeds} "
            f"and {FULL.episodes}."
        )
    return said


STUDY = Study(
    name="paper",
    title="Posterior sampling with delayed feedback: the paper, reproduced",
    package=__name__,
    quick=FULL,
    full=FULL,
    facts=_facts,
    cost=seconds,
    opening=opening,
    claims=claims,
    remarks=_remarks,
    appendix=lambda: [departures()],
)
