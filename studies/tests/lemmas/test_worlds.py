"""Where the lemmas are measured."""

from __future__ import annotations

from belated_studies.lemmas.worlds import FULL, QUICK


def test_the_seeds_of_all_parts_grow_together_and_have_a_folder() -> None:
    assert [len(QUICK.part(n)) for n in (2, 3, 5, 500)] == [2, 3, 5, 500]
    assert [len(FULL.part(n)) for n in (2, 3, 5, 500)] == [10, 15, 25, 2500]
    assert len(QUICK.resized(seeds=1).part(2)) == 1
    assert len({QUICK.folder, FULL.folder, QUICK.resized(seeds=3).folder}) == 3
