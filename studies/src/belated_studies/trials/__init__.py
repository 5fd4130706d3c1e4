"""Learning by age on trials: randomised ones with the event times of their patients, and generated ones."""

from __future__ import annotations

from belated.environments.trials import RECORDED, installed
from belated_studies.study import Played, Study
from belated_studies.trials.settings import FIRST_SEED, FULL, QUICK, Size


def _facts(played: Played[Size]) -> dict[str, str]:
    packages = sorted({source.package for source in RECORDED.values()})
    missing = [package for package in packages if not installed(package)]
    return {
        "Seeds": f"{FIRST_SEED} to {FIRST_SEED + played.size.seeds - 1}",
        "Settings": "the constants of learning by age were fixed on other, generated trials with seeds 1000 to 1099; "
        "the width of its draws was corrected after runs of these trials with seeds below 240, the number of ages and "
        "the width of ages that no decision has reached were chosen after runs with seeds from 5000 on, and the rule "
        "for the prior of each age with seeds 100 to 219",
        "Records": f"from {' and '.join(packages)}"
        + (f"; rows that need {' and '.join(missing)} are left out (not installed)" if missing else ""),
    }


STUDY = Study(
    name="trials",
    title="Learning by age on clinical and generated trials",
    package=__name__,
    quick=QUICK,
    full=FULL,
    facts=_facts,
)
