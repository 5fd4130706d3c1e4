from belated_studies.searching import RUNGS, grid


def test_a_grid_is_logarithmic_and_can_be_quoted() -> None:
    found = grid(0.001, 1, 4)
    assert found == [0.001, 0.01, 0.1, 1.0]
    assert all(value == float(f"{value:.3g}") for value in grid(0.5, 64, 12))


def test_the_last_rung_decides_on_seeds_of_its_own() -> None:
    seen = {seed for rung in RUNGS[:-1] for seed in rung.seeds}
    assert not seen & set(RUNGS[-1].seeds)
    assert [rung.keep for rung in RUNGS] == [8, 3, 1]
