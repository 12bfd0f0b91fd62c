"""What is decided about a CUDA device before anything is computed on it."""

from __future__ import annotations

import numpy as np
import pytest

import fairshield as fs
from fairshield.base.errors import MissingExtraError
from fairshield.policy.layout import layer_rows, layout_of
from fairshield.synthesis.cuda import device
from fairshield.synthesis.cuda import solver as cuda

DP = fs.DemographicParity("0.1")


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "missing", lambda: "CUDA finds no device")


@pytest.mark.usefixtures("no_device")
def test_without_a_device_the_error_says_what_was_found_and_what_to_install(
    even: fs.InputModel,
) -> None:
    said = r"'cuda' needs CuPy and a CUDA device, and CUDA finds no device: .*fairshield\[cuda\]"
    with pytest.raises(MissingExtraError, match=said):
        fs.synthesize(DP, even, horizon=5, backend="cuda")


@pytest.mark.usefixtures("no_device")
def test_without_a_device_auto_is_the_processor(
    even: fs.InputModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_WORTH_A_DEVICE", 0)
    policy = fs.synthesize(DP, even, horizon=6)
    assert policy.expected_cost == fs.synthesize(DP, even, horizon=6, backend="cpu").expected_cost


@pytest.mark.parametrize("labelled", [False, True])
def test_what_no_device_holds_is_not_laid_out(
    labelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "missing", lambda: None)
    monkeypatch.setattr(device, "_free_bytes", lambda: 10**12)
    monkeypatch.setattr(device, "pair_starts", lambda layout: pytest.fail("laid out"))
    layout = layout_of(10**9, labelled)
    assert not device.pays(layout, 1, record=10**9)
    with pytest.raises(fs.MemoryLimitError, match="on the CUDA device"):
        device.check_device_memory(layout, 1, record=10**9)


def test_nobody_looks_for_a_device_for_a_small_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked() -> str | None:
        raise AssertionError

    monkeypatch.setattr(device, "missing", looked)
    assert not device.pays(layout_of(100, False), 1, record=100)


def test_auto_takes_a_device_only_if_the_problem_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layout_of(500, False)
    need = device.device_bytes(layout, 1, record=500)
    monkeypatch.setattr(device, "missing", lambda: None)
    for free, taken in ((need, True), (need - 1, False)):
        monkeypatch.setattr(device, "_free_bytes", lambda free=free: free)
        assert device.pays(layout, 1, record=500) is taken


def test_a_problem_too_large_for_the_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_free_bytes", lambda: 10**9)
    with pytest.raises(fs.MemoryLimitError, match=r"horizon 1000 needs about .* GB on the CUDA"):
        device.check_device_memory(layout_of(1000, False), 1, record=1000)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("horizon", [1, 2, 7, 12])
def test_rows_on_the_device_do_not_overlap(horizon: int, labelled: bool) -> None:
    starts = device.pair_starts(layout_of(horizon, labelled))
    for t in range(horizon + 1):
        rows = layer_rows(t, labelled)
        seen = rows.n_a + rows.n_b
        pair = seen * (seen + 1) // 2 + rows.n_a if labelled else rows.n_a
        begin = starts[pair] + rows.short * ((rows.states + 3) & ~3)
        order = np.argsort(begin)
        ends = (begin + rows.states)[order]
        assert (ends[:-1] <= begin[order][1:]).all()
        assert ends[-1] <= starts[-1]
        assert (begin % 4 == 0).all()


@pytest.mark.parametrize("horizon", [1, 5, 28, 29, 30, 60, 90])
def test_tiles_cover_every_state_once(horizon: int) -> None:
    tables = cuda._tile_tables(horizon, 6)
    covered = np.zeros((horizon + 1, horizon + 1), int)
    for corner in tables.corners.tolist():
        k_a, k_b = corner & 0xFFFF, corner >> 16
        covered[k_a : k_a + 6, k_b : k_b + 32 - cuda._LAYERS] += 1
    k_a, k_b = np.indices(covered.shape)
    assert (covered[k_a + k_b <= horizon] == 1).all()
    sums = np.sort((tables.corners & 0xFFFF) + (tables.corners >> 16))
    for total in range(horizon + 2):
        assert tables.before[total] == (sums < total).sum()
