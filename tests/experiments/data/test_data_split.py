"""Parts of a data set and its features as numbers: laws on made-up and real people."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield_experiments.data import (
    ENVIRONMENTS,
    Dataset,
    Split,
    encode,
    feature_names,
    load,
    make_folds,
    make_split,
)


def made_up(n: int, seed: int, *, share: float = 0.3) -> Dataset:
    """People with two numeric and two categorical features; one of either never varies."""
    rng = np.random.default_rng(seed)
    target = np.zeros(n, dtype=np.bool_)
    target[: round(share * n)] = True
    return Dataset(
        name="made-up",
        title="Made up",
        task="nothing",
        attribute="nothing",
        groups=("a", "b"),
        group=rng.integers(0, 2, n).astype(np.int8),
        target=rng.permutation(target),
        numeric={"height": rng.normal(170, 10, n), "legs": np.full(n, 2.0)},
        categorical={"town": rng.choice(["Graz", "Wien", "Linz"], n), "planet": np.full(n, "Erde")},
        problems="They do not exist.",
    )


data_sets = st.builds(
    made_up,
    st.integers(20, 300),
    st.integers(0, 2**32 - 1),
    share=st.floats(0.2, 0.8),
)
seeds = st.integers(0, 2**32 - 1)


def parts(split: Split) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return split.train, split.test, split.validation


@given(data_sets, seeds, st.integers(2, 4))
def test_folds_divide_the_training_part(dataset: Dataset, seed: int, folds: int) -> None:
    split = make_split(dataset, seed=seed)
    least = min(dataset.target[split.train].sum(), (~dataset.target[split.train]).sum())
    if least < folds:
        with pytest.raises(fs.InvalidValueError, match=f"of one of which there are {least}"):
            make_folds(dataset, split, folds, seed=seed)
        return
    made = make_folds(dataset, split, folds, seed=seed)
    assert len(made) == folds
    assert sorted(np.concatenate([fold.test for fold in made])) == sorted(split.train)
    share = dataset.target[split.train].mean()
    for fold in made:
        assert sorted((*fold.train, *fold.test)) == sorted(split.train)
        assert not len(fold.validation)
        assert abs(dataset.target[fold.test].sum() - share * len(fold.test)) <= 1
        assert not fold.train.flags.writeable


@given(data_sets, seeds)
def test_parts_are_disjoint_and_together_all(dataset: Dataset, seed: int) -> None:
    rows = np.concatenate(parts(make_split(dataset, seed=seed)))
    assert sorted(rows) == list(range(len(dataset)))


@given(data_sets, seeds)
def test_parts_have_their_shares_within_a_person(dataset: Dataset, seed: int) -> None:
    for rows, share in zip(parts(make_split(dataset, seed=seed)), (0.4, 0.3, 0.3), strict=True):
        assert abs(len(rows) - share * len(dataset)) <= 1


@given(data_sets, seeds)
def test_every_part_has_its_share_of_the_target(dataset: Dataset, seed: int) -> None:
    """Within two people: each of the two cuts rounds once."""
    for rows in parts(make_split(dataset, seed=seed)):
        assert abs(dataset.target[rows].sum() - dataset.target.mean() * len(rows)) <= 2


@given(data_sets, seeds)
def test_a_seed_is_a_split(dataset: Dataset, seed: int) -> None:
    first, second = make_split(dataset, seed=seed), make_split(dataset, seed=seed)
    assert all(map(np.array_equal, parts(first), parts(second)))


def test_another_seed_is_another_split() -> None:
    dataset = made_up(200, 0)
    first, second = make_split(dataset, seed=0), make_split(dataset, seed=1)
    assert not any(map(np.array_equal, parts(first), parts(second)))


@given(data_sets, seeds)
def test_a_row_is_numbers_and_one_one_for_each_category(dataset: Dataset, seed: int) -> None:
    features = encode(dataset, make_split(dataset, seed=seed))
    names = np.array(feature_names(dataset))
    assert features.dtype == np.float32
    assert features.shape == (len(dataset), len(names))
    assert list(names[:2]) == ["height", "legs"]
    assert list(names[-1:]) == ["planet=Erde"]
    for name, column in dataset.categorical.items():
        own = np.flatnonzero(np.char.startswith(names, f"{name}="))
        assert (features[:, own].sum(axis=1) == 1).all()
        chosen = names[own[features[:, own].argmax(axis=1)]]
        assert (chosen == np.char.add(f"{name}=", column)).all()


@given(data_sets, seeds)
def test_held_out_people_do_not_move_the_scale(dataset: Dataset, seed: int) -> None:
    split = make_split(dataset, seed=seed)
    heights = dataset.numeric["height"].copy()
    heights[split.test] += 1000
    moved = Dataset(**{**vars(dataset), "numeric": {**dataset.numeric, "height": heights}})
    before, after = encode(dataset, split), encode(moved, split)
    assert np.array_equal(before[split.train], after[split.train])
    assert (before[split.test, 0] != after[split.test, 0]).all()


@given(data_sets, seeds)
def test_group_and_target_do_not_reach_the_features(dataset: Dataset, seed: int) -> None:
    split = make_split(dataset, seed=seed)
    flipped = Dataset(**{**vars(dataset), "group": 1 - dataset.group, "target": ~dataset.target})
    assert np.array_equal(encode(dataset, split), encode(flipped, split))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_real_people_are_standardised_on_the_training_part(data_directory: Path, name: str) -> None:
    dataset = load(name)
    split = make_split(dataset)
    features = encode(dataset, split)
    train = features[split.train, : len(dataset.numeric)].astype(np.float64)
    # float32 keeps 7 digits, and the values reach a hundred deviations.
    assert np.allclose(train.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(train.std(axis=0), 1, atol=1e-5)
    assert np.isfinite(features).all()
    names = feature_names(dataset)
    assert len(set(names)) == len(names) == features.shape[1]
    hidden = {"gender": r"sex|personal_status", "race": r"race", "age": r"age|age_cat"}
    assert not [text for text in names if re.match(rf"({hidden[dataset.attribute]})(=|$)", text)]
