"""The file of models."""

from pathlib import Path

import pytest

from belated.decisions import Mature, Unknown
from belated.errors import InvalidInputError
from belated.service._config import load_models


def test_each_table_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        '[models.ads]\nactions = ["a", "b"]\nfeatures = ["x"]\nsilence = {kind = "unknown"}\n'
        '[models.mail]\nsilence = {kind = "mature", seconds = 86400, default = 0.0}\nfloor = 0.05\n'
        'actions.now = {cost = 1.0}\nactions.later = {cost = 0.5}\naction_features = ["cost"]\n'
    )
    found = load_models(path)
    assert found["ads"].silence == Unknown()
    assert found["ads"].names == ("a", "b")
    assert found["mail"].silence == Mature(seconds=86400.0, default=0.0)
    assert (found["mail"].floor, found["mail"].actions["later"]) == (0.05, {"cost": 0.5})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"\[models.NAME\]"),
        ("models = 3", r"\[models.NAME\]"),
        ("[models]", r"\[models.NAME\]"),
        ("port = 8080\n[models.a]\nsilence = {kind = 'unknown'}", "nothing else"),
        ("[models.a", "not a TOML file"),
        ("[models.'a/b']\nsilence = {kind = 'unknown'}", "without a /.*'a/b'"),
        ("models.a = 1", "models.a of .*table"),
        ("[models.a]\nactions = ['x']", "models.a of .*silence"),
        ("[models.a]\nsilence = {kind = 'never'}", "models.a of .*'never'"),
        ("[models.a]\nsilence = {kind = 'unknown'}\nflor = 0.1", "models.a of .*'flor'"),
        ("[models.a]\nsilence = {kind = 'unknown'}\nfloor = nan", "models.a of .*floor"),
        ("[models.a]\nsilence = {kind = 'unknown'}\nactions = ['x', 'x']", "models.a of .*different"),
    ],
)
def test_a_bad_file_is_refused_with_the_place_of_the_mistake(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        load_models(tmp_path / "models.toml")


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="config must be a file that can be read"):
        load_models(tmp_path / "none.toml")
