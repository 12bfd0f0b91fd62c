"""The five learners: what they promise whatever their objective."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import fairshield as fs
from fairshield_experiments.learners import LEARNERS, Examples, Learner, Schedule
from fairshield_experiments.learners.network import Descent, Training, dropout

FEW = Schedule(steps=3, batch=128)
SOME = Schedule(steps=40, batch=128)


def short(name: str, schedule: Schedule = FEW) -> Learner:
    # All five are dataclasses; a learner need not be one.
    return dataclasses.replace(LEARNERS[name], schedule=schedule)  # type: ignore[type-var]


def parity_gap(scores: np.ndarray, group: np.ndarray) -> float:
    accepted = scores > 0.5
    return abs(accepted[group == 0].mean() - accepted[group == 1].mean())


@pytest.mark.parametrize("name", LEARNERS)
class TestEveryLearner:
    def test_same_seed_same_scores_bit_for_bit(self, name: str, biased: Examples) -> None:
        first, second = (short(name).fit(biased, seed=3).scores(biased.features) for _ in "ab")
        assert first.tobytes() == second.tobytes()

    def test_another_seed_other_scores(self, name: str, biased: Examples) -> None:
        first, second = (short(name).fit(biased, seed=s).scores(biased.features) for s in (0, 1))
        assert (first != second).any()

    def test_threads_do_not_matter(self, name: str, biased: Examples) -> None:
        before = torch.get_num_threads()
        found = []
        try:
            for n_threads in (1, 2):
                torch.set_num_threads(n_threads)
                found.append(short(name).fit(biased, seed=0).scores(biased.features))
                assert torch.get_num_threads() == n_threads
        finally:
            torch.set_num_threads(before)
        assert found[0].tobytes() == found[1].tobytes()

    def test_global_randomness_is_neither_read_nor_changed(
        self, name: str, biased: Examples
    ) -> None:
        state, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        first = short(name).fit(biased, seed=0).scores(biased.features)
        assert torch.equal(torch.get_rng_state(), state)
        assert (np.random.get_state()[1] == legacy).all()  # noqa: NPY002
        with torch.random.fork_rng():
            torch.manual_seed(99)
            second = short(name).fit(biased, seed=0).scores(biased.features)
        assert first.tobytes() == second.tobytes()

    def test_scores_are_probabilities_one_each(self, name: str, biased: Examples) -> None:
        classifier = short(name).fit(biased, seed=0)
        scores = classifier.scores(biased.features)
        assert scores.shape == (len(biased),)
        assert scores.dtype == np.float64
        assert ((scores >= 0) & (scores <= 1)).all()
        assert classifier.scores(biased.features[:0]).shape == (0,)

    def test_it_learns(self, name: str, biased: Examples) -> None:
        scores = short(name, SOME).fit(biased, seed=0).scores(biased.features)
        chance = max(biased.target.mean(), 1 - biased.target.mean())
        assert ((scores > 0.5) == biased.target).mean() > chance + 0.1

    def test_it_leaves_its_examples_alone(self, name: str, biased: Examples) -> None:
        frozen = [a.copy() for a in (biased.features, biased.target, biased.group)]
        short(name).fit(biased, seed=0)
        for before, now in zip(frozen, (biased.features, biased.target, biased.group), strict=True):
            assert (before == now).all()

    def test_it_and_its_classifier_travel_between_processes(
        self, name: str, biased: Examples
    ) -> None:
        learner = pickle.loads(pickle.dumps(short(name)))
        assert learner == short(name)
        classifier = learner.fit(biased, seed=0)
        again = pickle.loads(pickle.dumps(classifier))
        assert (again.scores(biased.features) == classifier.scores(biased.features)).all()

    @pytest.mark.parametrize("kind", ["group", "class", "rows", "nan", "code"])
    def test_bad_examples_are_named(self, name: str, kind: str, biased: Examples) -> None:
        x, y, g = biased.features.copy(), biased.target, biased.group
        if kind == "nan":
            x[0, 0] = np.nan
        bad, message = {
            "group": (Examples(x, y, np.zeros_like(g)), "has group b"),
            "class": (Examples(x, np.ones_like(y), g), "has target 0"),
            "rows": (Examples(x[:-1], y, g), "one row per person"),
            "nan": (Examples(x, y, g), "finite"),
            "code": (Examples(x, y, g + 1), "group must be 0 or 1"),
        }[kind]
        with pytest.raises(fs.InvalidValueError, match=message):
            short(name).fit(bad, seed=0)


@pytest.mark.parametrize("name", ["DiffDP", "HSIC", "PR"])
def test_penalties_narrow_the_gap(name: str, biased: Examples) -> None:
    gaps = [
        parity_gap(short(n, SOME).fit(biased, seed=0).scores(biased.features), biased.group)
        for n in ("ERM", name)
    ]
    assert gaps[1] < 0.8 * gaps[0]


def test_a_stronger_adversary_narrows_the_gap(biased: Examples) -> None:
    weak, strong = (
        dataclasses.replace(LEARNERS["LAFTR"], adversary=a, reconstruction=0.0, schedule=SOME)  # type: ignore[type-var]
        for a in (0.0, 20.0)
    )
    gaps = [
        np.mean(
            [
                parity_gap(learner.fit(biased, seed=s).scores(biased.features), biased.group)
                for s in range(3)
            ]
        )
        for learner in (weak, strong)
    ]
    assert gaps[1] < gaps[0]


def test_a_step_changes_every_parameter(biased: Examples) -> None:
    training = Training.start(biased, schedule=FEW, seed=0, device="cpu")
    network = training.network(6, 8, 8, 1)
    before = [p.detach().clone() for p in network.parameters()]
    loss = (network(training.features).flatten() - training.target).square().mean()
    Descent(network).step(loss, 0.01)
    for old, new in zip(before, network.parameters(), strict=True):
        assert not torch.equal(old, new)
        assert (old - new).abs().max() <= 0.0101  # Adam moves by the rate at most


class TestSchedule:
    def test_steps_see_everybody_before_anybody_twice(self) -> None:
        rng = torch.Generator().manual_seed(0)
        batches = list(Schedule(steps=6, batch=4).batches(10, rng))
        assert [len(b.rows) for b in batches] == [4, 4, 2, 4, 4, 2]
        for epoch in (batches[:3], batches[3:]):
            assert sorted(torch.cat([b.rows for b in epoch]).tolist()) == list(range(10))

    def test_an_epoch_is_a_pass_over_everybody(self) -> None:
        rng = torch.Generator().manual_seed(0)
        batches = list(Schedule(epochs=3, batch=4, decay_every=2).batches(10, rng))
        assert [b.rate for b in batches] == pytest.approx([0.01] * 6 + [0.001] * 3)

    def test_the_rate_falls_to_a_tenth(self) -> None:
        rates = [b.rate for b in Schedule(steps=150).batches(2000, torch.Generator())]
        assert rates == pytest.approx([0.01] * 50 + [0.001] * 50 + [0.0001] * 50)

    @pytest.mark.parametrize(("n", "size"), [(400, 128), (1023, 128), (1024, 1024), (9000, 1024)])
    def test_few_people_come_in_small_batches(self, n: int, size: int) -> None:
        first = next(Schedule(steps=1).batches(n, torch.Generator()))
        assert len(first.rows) == size

    @pytest.mark.parametrize("given", [{}, {"steps": 1, "epochs": 1}, {"steps": 0}])
    def test_it_has_steps_or_epochs(self, given: dict[str, int]) -> None:
        with pytest.raises(fs.InvalidValueError, match=r"Schedule\(steps=150\)"):
            Schedule(**given)


def test_dropout_keeps_half_and_doubles_it() -> None:
    noise = torch.Generator().manual_seed(0)
    ones = torch.ones(1000, 64)  # a column per bit of a random word
    kept = dropout(ones, noise)
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert (kept.mean(0) - 1).abs().max() < 0.15
    assert not torch.equal(kept, dropout(ones, noise))
    assert dropout(torch.ones(3, 7), noise).shape == (3, 7)


def test_only_a_learner_of_the_paper_needs_torch() -> None:
    code = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name="torch")

sys.meta_path.insert(0, Gone())
import numpy as np
from sklearn.linear_model import LogisticRegression
import fairshield_experiments.learners as learners

people = learners.Examples(np.eye(4, dtype="f4"), np.arange(4) > 1, np.arange(4) % 2)
print(learners.as_learner(LogisticRegression()).fit(people, seed=0).scores(people.features).shape)
try:
    learners.LEARNERS
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "(4,)",
        "MissingExtraError LEARNERS needs torch, which is not installed: "
        "pip install 'fairshield[experiments]'",
    ]
