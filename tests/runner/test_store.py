"""Rows in a folder or at an address: whole, recognised, and never mixed with those of other settings."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import known_implementations
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import belated
from belated._cli import app
from belated._util.files import BLANK_SEAL, Folder, seal
from belated.runner import Run, Store
from belated.runner._store import from_parquet, to_parquet


def an_experiment(**changes: object) -> belated.Experiment:
    return belated.Experiment(
        name="x",
        environments=belated.RiverSwim(),
        agents={"a": belated.DelayedPSVI(**changes)},  # type: ignore[arg-type]
        delays=belated.Lossy(belated.Constant(1), 0.5),
        episodes=20,
        seeds=1,
    )


def one_run(**changes: object) -> Run:
    return an_experiment(**changes).runs()[0]


def play(run: Run) -> pl.DataFrame:
    return belated.simulate(run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=run.seed)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    assert store.read(run) is None
    rows = play(run)
    store.write(run, rows)
    again = store.read(run)
    assert again is not None
    assert_frame_equal(again, rows, check_exact=True)
    assert store.path(run) == tmp_path / "x/riverswim-5/a/lossy-0.5-constant-1/seed-00.parquet"


def test_rows_of_other_settings_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(one_run(), play(one_run()))
    with pytest.raises(belated.InvalidInputError, match=r"has rows of other settings: agent was .*'scale': 1\.0"):
        store.read(one_run(scale=2.0))


def test_damage_at_any_place_is_noticed(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    store.write(run, play(run))
    whole = store.path(run).read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        store.path(run).write_bytes(whole[:length])
        with pytest.raises(belated.DamagedFileError, match=r"seed-00\.parquet"):
            store.read(run)


def test_a_flipped_bit_anywhere_is_noticed_before_any_parser_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = Store(tmp_path), one_run()
    store.write(run, play(run))
    whole = store.path(run).read_bytes()
    monkeypatch.setattr(pl, "read_parquet", None)
    monkeypatch.setattr(pl, "read_parquet_metadata", None)
    for at in range(len(whole)):
        store.path(run).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(belated.DamagedFileError, match=r"seed-00\.parquet is not an intact belated-rows file"):
            store.read(run)


def test_other_programs_can_read_the_rows(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    rows = play(run)
    store.write(run, rows)
    assert_frame_equal(pl.read_parquet(store.path(run)), rows, check_exact=True)
    assert_frame_equal(pl.scan_parquet(store.path(run)).collect(), rows, check_exact=True)


def test_foreign_and_short_files_are_refused(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    path = store.path(run)
    path.parent.mkdir(parents=True)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(belated.DamagedFileError, match="has no digest, so it is truncated, foreign or old"):
        store.read(run)
    file = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(file, metadata={"digest": BLANK_SEAL})
    path.write_bytes(seal(file.getvalue()))
    with pytest.raises(belated.DamagedFileError, match="is a Parquet file, but not with rows of belated"):
        store.read(run)
    path.write_bytes(to_parquet(pl.DataFrame({"a": [1]}), run.describe()))
    with pytest.raises(belated.DamagedFileError, match="does not have the columns"):
        store.read(run)
    path.write_bytes(to_parquet(play(run)[:10], run.describe()))
    with pytest.raises(belated.DamagedFileError, match="column episode must be 20 of type int64"):
        store.read(run)


def test_a_panic_of_the_parser_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, run = Store(tmp_path), one_run()
    store.write(run, play(run))

    def panic(*_: Any) -> None:
        raise pl.exceptions.PanicException("out of bounds")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(belated.DamagedFileError, match="is not an intact belated-rows file: out of bounds"):
        store.read(run)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = play(one_run())
    many = rows[:1].select(pl.all().repeat_by(10**6).explode())
    path = tmp_path / "bomb.parquet"
    path.write_bytes(to_parquet(many, {"seed": 0}))
    nested = tmp_path / "nested.parquet"
    nested.write_bytes(to_parquet(rows.with_columns(lists=pl.lit([[0] * 10**6])), {"seed": 0}))
    monkeypatch.setattr(pl, "read_parquet", None)  # it would take the memory
    for file in (path, nested):
        with pytest.raises(belated.errors.DamagedFileError, match=r"rows of \d columns cannot be in \d+ bytes"):
            from_parquet(file)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("episode", 7),
        ("start", 10**6),
        ("start", -1),
        ("delay", -1),
        ("delay", 3),
        ("arrived", -1),
        ("arrived", 7),
        ("value", -1.5e-152),
        ("value", float("nan")),
        ("value", 1e9),
        ("optimal", float("inf")),
        ("sampled_return", float("nan")),
        ("regret", -1.5e-152),
        ("regret", float("nan")),
    ],
)
def test_rows_that_no_run_could_give_are_refused_even_with_a_digest(tmp_path: Path, column: str, value: Any) -> None:
    store, run = Store(tmp_path), one_run()
    rows = play(run)
    changed = rows.with_columns(pl.when(pl.col("episode") == 9).then(value).otherwise(pl.col(column)).alias(column))
    store.write(run, changed.cast(rows.schema))
    with pytest.raises(
        belated.DamagedFileError, match=rf"does not contain the rows of a run: column (regret|arrived|{column}) must"
    ):
        store.read(run)


def test_rows_of_another_belated_are_refused(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    about = {**run.describe(), "made_by": {"belated": "0.0.9", "code": "00"}}
    store.folder.write(f"{run.id}.parquet", to_parquet(play(run), about))
    with pytest.raises(belated.InvalidInputError, match=r"was made by belated 0\.0\.9 \(code 00\), this is belated .*"):
        store.read(run)
    with pytest.raises(belated.InvalidInputError, match=r"use another folder, or delete the file to run it again"):
        belated.run_experiment(an_experiment(), folder=tmp_path, progress=False)


def test_rows_of_a_coarser_record_are_refused_both_ways(tmp_path: Path) -> None:
    store, fine = Store(tmp_path), one_run()
    coarse = replace(fine, record_every=5)
    store.write(fine, play(fine))
    with pytest.raises(belated.InvalidInputError, match="record_every was None, now it is 5"):
        store.read(coarse)
    store.folder.write(f"{fine.id}.parquet", to_parquet(play(fine), coarse.describe()))
    with pytest.raises(belated.InvalidInputError, match="record_every was 5, now it is None"):
        store.read(fine)


class Renaming(LocalFileSystem):  # type: ignore[misc]
    """As over SFTP: a file grows while it is written, and a rename is all that is atomic."""

    protocol = "renaming"
    broken = False

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        assert Path(path1).read_bytes(), "renamed before it was whole"
        if self.broken:
            raise ConnectionError("lost")
        super().mv(path1, path2, **options)

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        assert Path(path).name.startswith("."), "a reader could see a part"
        super().pipe_file(path, value, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("renaming://")


fsspec.register_implementation("renaming", Renaming)


@pytest.mark.parametrize("kind", ["path", "file", "memory", "renaming"])
def test_every_address_holds_the_same_bytes(tmp_path: Path, kind: str) -> None:
    address = {
        "path": str(tmp_path / "rows"),
        "file": (tmp_path / "rows").as_uri() + "/",
        "memory": f"memory://{tmp_path.name}/rows",
        "renaming": f"renaming://{tmp_path}/rows",
    }[kind]
    store, run = Store(address), one_run()
    assert store.read(run) is None
    store.write(run, play(run))
    store.write(run, play(run))
    again = pickle.loads(pickle.dumps(store)).read(run)
    assert again is not None
    assert_frame_equal(again, play(run), check_exact=True)
    assert store.folder.read(f"{run.id}.parquet") == to_parquet(play(run), run.describe())
    assert store.where(run).endswith("rows/x/riverswim-5/a/lossy-0.5-constant-1/seed-00.parquet")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == (0 if kind == "memory" else 1)
    assert store.folder.in_memory == (kind == "memory")
    if kind in ("path", "file"):
        assert store.path(run).is_file()
    else:
        with pytest.raises(belated.InvalidInputError, match=f"{kind}://.* is not a file on this machine"):
            store.path(run)


def test_damage_at_an_address_is_noticed_and_named() -> None:
    store, run = Store("memory://damage"), one_run()
    store.folder.write(f"{run.id}.parquet", to_parquet(play(run), run.describe())[:-50])
    with pytest.raises(belated.DamagedFileError, match=r"memory://damage/x/.*seed-00\.parquet is not an intact"):
        store.read(run)


def test_a_rename_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(f"renaming://{tmp_path}")
    folder.write("a/rows", b"old")
    monkeypatch.setattr(Renaming, "broken", True)
    with pytest.raises(ConnectionError):
        folder.write("a/rows", b"new")
    assert [path.read_bytes() for path in (tmp_path / "a").iterdir()] == [b"old"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere://x", "folder 'nowhere://x' cannot be used: Protocol not known: nowhere"),
        (3, "folder must be a path or an address such as s3://bucket/folder, got 3"),
    ],
)
def test_what_is_no_folder_is_refused(address: Any, message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        Store(address)


def test_a_missing_package_of_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(known_implementations, "absent", {"class": "absent.FS", "err": "install absent"})
    with pytest.raises(belated.InvalidInputError, match=r"folder 'absent://x' cannot be used: install absent"):
        Store("absent://x")


def test_the_command_puts_rows_summary_and_figures_at_an_address(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\nepisodes = 20\nseeds = 2\nenvironments.river = { environment = "riverswim" }\n'
        'agents.random = { algorithm = "random" }\ndelays.short = { distribution = "constant", value = 2 }\n',
        encoding="utf-8",
    )
    result = CliRunner().invoke(app, ["run", str(tmp_path / "tiny.toml"), "--out", "memory://command"])
    assert result.exit_code == 0, result.output
    assert "are in memory://command/tiny" in result.stdout
    files = fsspec.filesystem("memory").find("/command/tiny")
    assert sorted(file.removeprefix("/command/tiny/") for file in files) == [
        "regret.png",
        "river/random/short/seed-00.parquet",
        "river/random/short/seed-01.parquet",
        "summary.csv",
        "summary.md",
        "value.png",
    ]
