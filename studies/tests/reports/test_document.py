import numpy as np
import pytest

from belated_studies.reports.document import Block, thin


@pytest.mark.parametrize("length", [1, 2, 249, 250, 251, 5000])
def test_thinning_keeps_both_ends_in_order(length: int) -> None:
    kept = thin(length)
    assert kept[0] == 0
    assert kept[-1] == length - 1
    assert kept.size == min(length, 250)
    assert (np.diff(kept) > 0).all()


def test_a_block_is_text_to_a_reader() -> None:
    assert f"figure-{Block('tuned')}" == "figure-tuned"
    assert Block("tuned") == "tuned"
