"""Models of MLflow that a version wrote, and what they answer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

import fairshield.mlflow

SCORES = Path(__file__).with_name("scores_of_column.py")
_TOLD = ["accepted", "proposed", "overruled", "cost", "paid", "window", "position", "reason"]


def save_model(policy: Path, folder: Path, scratch: Path) -> None:
    """Save a classifier, which is a file of code, and a policy as a model of MLflow."""
    inner = scratch / "classifier"
    mlflow.pyfunc.save_model(
        str(inner), loader_module=SCORES.stem, code_paths=[str(SCORES)], pip_requirements=[]
    )
    fairshield.mlflow.save_model(
        str(inner), policy, folder, group="group", features=["score"], pip_requirements=[],
        predict_method="predict", threshold=0.5, cost="confidence",
    )  # fmt: skip


def people(n: int) -> list[list[Any]]:
    """Groups and scores of people whom a shield must overrule now and then."""
    rng = random.Random(n)
    return [[rng.choice("ab"), round(rng.random(), 3)] for _ in range(n)]


def model_facts(folder: Path, asked: list[list[Any]]) -> dict[str, Any]:
    """What MLflow answers with the model in a folder."""
    frame = pd.DataFrame(asked, columns=["group", "score"])
    told = mlflow.pyfunc.load_model(str(folder)).predict(frame)
    return {"answers": told[_TOLD].astype(object).to_numpy().tolist()}
