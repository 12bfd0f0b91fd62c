"""Policies on disk: exact, self-describing, and written whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import Branching, NotThatMany, Quota, code_at, positions

import fairshield as fs
from fairshield.policy.artifact import digest_of
from fairshield.spec import KINDS, Property


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "loans.shield"


# Round trip ---------------------------------------------------------------------------------

SPECS: list[dict[str, Any]] = [
    {"prop": fs.DemographicParity("0.1"), "horizon": 12},
    {"prop": fs.DemographicParity("0.1"), "horizon": 12, "checkpoints": (6,), "spread": 3.0},
    {"prop": fs.DisparateImpact("1.25", two_sided=False), "horizon": 7},
    {"prop": fs.BoundedRates("0.2", "0.6"), "horizon": 9},
    {"prop": fs.EqualOpportunity("0.2", min_support=2), "horizon": 7},
    {"prop": fs.PredictiveEquality("1/3", undefined="rate-0"), "horizon": 6},
    {"prop": fs.ShareParity("0.3"), "horizon": 6, "start": fs.Counts({"a": (4, 2), "b": (3, 2)})},
    {"prop": NotThatMany(3), "horizon": 6},
    {"prop": Branching(1), "horizon": 6},
    {"prop": fs.DemographicParity("0.1"), "horizon": 6, "backend": "reference"},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: str(s["prop"]))
@pytest.mark.parametrize("levels", [1, 3])
def test_a_loaded_policy_is_the_one_saved_bit_for_bit(
    spec: dict[str, Any], levels: int, path: Path
) -> None:
    costs = [0.5, 1.0, 2.0][:levels]
    table = {(g, r, c): 0.25 / levels for g in "ab" for r in (False, True) for c in costs}
    inputs = fs.InputModel.from_table(table, outcomes={"a": 0.5, "b": 0.25})
    policy = fs.synthesize(inputs=inputs, **spec)
    policy.save(path)
    loaded = fs.Policy.load(path)
    for name in ("prop", "horizon", "start", "checkpoints", "spread", "version"):
        assert getattr(loaded, name) == getattr(policy, name)
    assert (loaded.expected_cost, loaded.least_cost) == (policy.expected_cost, policy.least_cost)
    assert loaded.inputs.to_dict() == policy.inputs.to_dict()
    assert np.array_equal(loaded.edges, policy.edges)
    assert np.array_equal(loaded.ranks, policy.ranks)
    assert loaded.nbytes == policy.nbytes
    for s in positions(policy.horizon, policy.labelled):
        assert loaded.decisions.feasible(*s) == policy.decisions.feasible(*s)
        for group in (0, 1):
            assert code_at(loaded.decisions, *s, group) == code_at(policy.decisions, *s, group)
    assert loaded.save(path.with_suffix(".again")) == digest_of(path)
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


def test_group_names_of_every_kind_survive(path: Path) -> None:
    for groups in (("Ω", 'naïve "quoted"\n'), (0, 1), (True, "x"), (-7, 10**12)):
        inputs = fs.InputModel.agnostic(dict.fromkeys(groups, 0.5))
        fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=3).save(path)
        loaded = fs.Policy.load(path)
        assert loaded.groups == groups
        assert [type(g) for g in loaded.groups] == [type(g) for g in groups]
        fs.Shield(loaded).decide(groups[0], proposed=True)


def test_tables_stay_on_disk_until_used(path: Path, plain_policy: fs.Policy) -> None:
    plain_policy.save(path)
    cuts = fs.Policy.load(path).decisions.rows.cuts
    base: Any = cuts
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap) or "mmap" in type(base).__name__
    assert not cuts.flags.writeable


def test_the_digest_is_that_of_the_content(path: Path, plain_policy: fs.Policy) -> None:
    digest = plain_policy.save(path)
    assert digest == digest_of(path)
    assert len(bytes.fromhex(digest)) == 32


def test_a_path_may_be_a_string(path: Path, plain_policy: fs.Policy) -> None:
    plain_policy.save(str(path))
    assert fs.Policy.load(str(path)).horizon == plain_policy.horizon


def test_loading_and_deciding_need_no_compiler(path: Path, plain_policy: fs.Policy) -> None:
    plain_policy.save(path)
    code = (
        "import sys, fairshield as fs\n"
        "shield = fs.Shield(fs.Policy.load(sys.argv[1]))\n"
        "shield.decide('a', proposed=True)\n"
        "assert shield.guaranteed and shield.remaining == 5\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(path)], check=True)


# Properties of one's own --------------------------------------------------------------------


def test_a_property_of_ones_own_must_be_known_to_load_its_policy(
    path: Path, even: fs.InputModel
) -> None:
    before = dict(KINDS)
    try:

        @dataclass(frozen=True)
        class AtMost(Property, kind="tests-at-most"):
            most: int

            def fair(self, a: Any, b: Any) -> Any:
                return a.accepted + b.accepted <= self.most

        fs.synthesize(AtMost(2), even, horizon=4).save(path)
        assert fs.Policy.load(path).prop == AtMost(2)
        del KINDS["tests-at-most"]
        with pytest.raises(fs.ArtifactError) as caught:
            fs.Policy.load(path)
        assert "unknown property 'tests-at-most'" in str(caught.value)
        assert "imported before a policy for it is loaded" in str(caught.value)
        assert str(path) in str(caught.value)
    finally:
        KINDS.clear()
        KINDS.update(before)


# Saving is atomic ---------------------------------------------------------------------------


@pytest.fixture
def saved(path: Path, plain_policy: fs.Policy) -> Path:
    plain_policy.save(path)
    return path


@pytest.fixture
def other(even: fs.InputModel) -> fs.Policy:
    """Large enough for several writes."""
    return fs.synthesize(fs.DemographicParity("0.1"), even, horizon=60)


def untouched(path: Path, policy: fs.Policy) -> None:
    """The old file is whole, and nothing lies beside it."""
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert fs.Policy.load(path).prop == policy.prop
    assert fs.Policy.load(path).horizon == policy.horizon


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file(
    function: str, error: BaseException, saved: Path, other: fs.Policy,
    plain_policy: fs.Policy, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def failing(*args: Any, **kwargs: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing)
        with pytest.raises(type(error)):
            other.save(saved)
    untouched(saved, plain_policy)


def test_a_writer_that_fails_half_way_leaves_the_old_file(
    saved: Path, other: fs.Policy, plain_policy: fs.Policy
) -> None:
    # The kernel itself refuses to let the file grow, after several blocks have been written.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            other.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    untouched(saved, plain_policy)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting needs root on Linux")
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_file(
    tiny_disk: Path, other: fs.Policy, plain_policy: fs.Policy
) -> None:
    target = tiny_disk / "loans.shield"
    plain_policy.save(target)
    with pytest.raises(OSError, match="No space left") as caught:
        other.save(target)
    assert caught.value.errno == errno.ENOSPC
    untouched(target, plain_policy)


def test_readers_see_the_old_file_or_the_new_one(
    saved: Path, other: fs.Policy, plain_policy: fs.Policy
) -> None:
    stop = threading.Event()
    seen: set[int] = set()
    faults: list[Exception] = []

    def read() -> None:
        while not stop.is_set():
            try:
                seen.add(fs.Policy.load(saved).horizon)
            except Exception as error:
                faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        other.save(saved)
        plain_policy.save(saved)
    stop.set()
    reader.join()
    assert not faults
    assert seen <= {plain_policy.horizon, other.horizon}


def test_a_new_file_can_be_read_by_those_the_umask_allows(
    path: Path, plain_policy: fs.Policy
) -> None:
    old = os.umask(0o027)
    try:
        plain_policy.save(path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path, plain_policy: fs.Policy) -> None:
    with pytest.raises(FileNotFoundError):
        plain_policy.save(tmp_path / "nowhere" / "x.shield")
    assert list(tmp_path.iterdir()) == []


def test_a_small_policy_is_a_small_file(path: Path, even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=100)
    policy.save(path)
    assert path.stat().st_size <= 2_000_000
    assert policy.nbytes <= path.stat().st_size


def test_quota_is_not_stored_by_pickle(path: Path, even: fs.InputModel) -> None:
    fs.synthesize(Quota(2), even, horizon=4).save(path)
    assert b"pickle" not in path.read_bytes()
    assert b"tests-quota" in path.read_bytes()
