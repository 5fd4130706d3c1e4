"""Delays that were observed, from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from delay_distributions import arriving

from belated._kernels.streams import stream
from belated.delays import NEVER, Empirical, Fixed, Lossy, Poisson
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError


def write_csv(folder: Path, *values: object) -> Path:
    path = folder / "delays.csv"
    path.write_text("\n".join(["episode,delay", *(f"{i},{value}" for i, value in enumerate(values))]) + "\n")
    return path


def test_empirical_from_csv_and_parquet(tmp_path: Path) -> None:
    csv = write_csv(tmp_path, 3, 0, 7, 3)
    pl.read_csv(csv).write_parquet(tmp_path / "delays.parquet")
    for path in (csv, str(tmp_path / "delays.parquet")):
        assert Empirical.from_file(path, "delay") == Empirical([3, 0, 7, 3])


def test_empirical_takes_whole_numbers_written_with_a_point(tmp_path: Path) -> None:
    assert Empirical.from_file(write_csv(tmp_path, "3.0", "1e2"), column="delay") == Empirical([3, 100])


def test_empirical_reads_the_very_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    path = write_csv(tmp_path, 4).rename(tmp_path / "delays[1].csv")
    assert Empirical.from_file(path, "delay") == Empirical([4])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([3, -2], "column 'delay' of .*delays.csv must hold integers >= 0, got -2 in row 2"),
        ([3, 4, 2.5], "must hold integers >= 0, got 2.5 in row 3"),
        ([*range(500), 2.5], "got 2.5 in row 501"),
        ([3, "", 4], "got None in row 2"),
        ([3, "NaN"], "got nan in row 2"),
        (["3", "late"], "got values of type String"),
        ([NEVER], f"got {NEVER} in row 1"),
    ],
)
def test_empirical_says_which_row_is_wrong(tmp_path: Path, values: list[object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Empirical.from_file(write_csv(tmp_path, *values), "delay")


def test_empirical_refuses_files_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"path must be a file that exists, got "):
        Empirical.from_file(tmp_path / "none.csv", "delay")
    with pytest.raises(InvalidInputError, match=r"path must be a file called \.csv or \.parquet, got "):
        Empirical.from_file(tmp_path / "delays.xls", "delay")
    with pytest.raises(UnknownNameError, match="column must be one of 'episode', 'delay', got 'delays'"):
        Empirical.from_file(write_csv(tmp_path, 3), "delays")
    damaged = tmp_path / "delays.parquet"
    damaged.write_bytes(b"PAR1 not a table")
    with pytest.raises(DamagedFileError, match=r"delays\.parquet cannot be read"):
        Empirical.from_file(damaged, "delay")
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(DamagedFileError, match=r"empty\.csv cannot be read"):
        Empirical.from_file(empty, "delay")


def test_lossy_loses_its_share() -> None:
    delays = Lossy(Poisson(50), 0.1).sample(stream(4, "delay"), 20_000)
    assert (delays == NEVER).mean() == pytest.approx(0.1, abs=0.008)
    assert arriving(delays).max() < 150


def test_fixed_gives_its_delays_in_order_and_no_more() -> None:
    distribution = Fixed(np.array([4, NEVER, 0]))
    rng = stream(0, "delay")
    before = rng.bit_generator.state
    assert distribution.sample(rng, 3).tolist() == [4, NEVER, 0]
    assert rng.bit_generator.state == before
    with pytest.raises(InvalidInputError, match="size must be at most 3, the number of fixed delays, got 4"):
        distribution.sample(rng, 4)
