"""Models of MLflow that earlier versions saved are loaded, and decide as they did then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from old_files import FILES
from old_models import model_facts, people, save_model

MODELS = sorted(FILES.glob("*/mlflow/*.json"))


def test_there_is_a_model() -> None:
    assert MODELS


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.relative_to(FILES).parts[0])
def test_an_old_model_answers_as_it_did(path: Path, tmp_path: Path) -> None:
    told = json.loads(path.read_text("utf-8"))
    folder = shutil.copytree(path.with_suffix(""), tmp_path / "model")  # Python caches its code
    now = model_facts(folder, told["asked"])
    assert now["answers"] == told["answers"]
    assert any(overruled for _, _, overruled, *_ in now["answers"])


def test_a_new_model_answers_as_an_old_one(tmp_path: Path) -> None:
    policy = FILES / "0.1/policies/plain.shield"
    save_model(policy, tmp_path / "model", tmp_path)
    told = json.loads((FILES / "0.1/mlflow/scores.json").read_text("utf-8"))
    assert told["asked"] == people(40)
    assert model_facts(tmp_path / "model", told["asked"])["answers"] == told["answers"]
