r"""The network that the learners share (LAFTR a variant of it), and the schedule of its training.

Three hidden layers of 512, 256 and 64 units, each followed by ReLU and, in training, dropout:

.. math::
    h_0 = x, \qquad h_i = m_i \odot \max(0, W_i h_{i-1} + b_i), \qquad
    \text{score}(x) = \sigma(W_4 h_3 + b_4),

where :math:`m_i` is 0 or 2 with equal chances in training and 1 in scoring.  Randomness comes from
generators made of the seed: the global state of torch is neither read nor changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import fairshield as fs
from fairshield_experiments.learners.base import Examples

HIDDEN = (512, 256, 64)


class MiniBatch(NamedTuple):
    """MiniBatch holds the rows of one mini-batch, and the learning rate of its step."""

    rows: Tensor
    rate: float


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Schedule says how long, in which batches and at which learning rate a network is trained.

    Attributes
    ----------
    steps, epochs
        Mini-batches, or passes over the training part; exactly one of them.
    rate, decay_every
        The learning rate is ``rate``, divided by ten after every ``decay_every`` steps (epochs if
        ``epochs`` is given).
    batch
        People in a mini-batch; by default 1024, and 128 if there are fewer than 1024 people.
    """

    steps: int | None = None
    epochs: int | None = None
    rate: float = 0.01
    decay_every: int = 50
    batch: int | None = None

    def __post_init__(self) -> None:
        lengths = [length for length in (self.steps, self.epochs) if length is not None]
        if len(lengths) != 1 or lengths[0] < 1:
            raise fs.InvalidValueError(
                f"a schedule has steps or epochs, at least 1, got steps={self.steps}, "
                f"epochs={self.epochs}: write Schedule(steps=150) or Schedule(epochs=150)"
            )

    def __str__(self) -> str:
        length = f"{self.steps} steps" if self.steps else f"{self.epochs} epochs"
        return f"{length} of mini-batches"

    def batches(self, n: int, rng: torch.Generator) -> Iterator[MiniBatch]:
        """Batches of ``n`` people in random order; everybody once before anybody twice."""
        size = self.batch or (1024 if n >= 1024 else 128)
        per_epoch = math.ceil(n / size)
        n_steps = self.steps or (self.epochs or 0) * per_epoch
        for step in range(n_steps):
            epoch, part = divmod(step, per_epoch)
            if part == 0:
                order = torch.randperm(n, generator=rng)
            decays = (step if self.steps else epoch) // self.decay_every
            yield MiniBatch(order[part * size : (part + 1) * size], self.rate * 0.1**decays)


PAPER = Schedule(steps=150)
"""The schedule behind the published performance tables."""


class Network(nn.Module):
    """Network has linear layers of the given widths with ReLU between them.

    Parameters
    ----------
    widths
        Units of each layer, that of the input first.
    rng
        Where weights are drawn from: uniform in ±1/√(inputs of the layer).
    """

    def __init__(self, widths: Sequence[int], rng: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(n_in, n_out, device="meta").to_empty(device="cpu")
            for n_in, n_out in pairwise(widths)
        )
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            limit = 1 / math.sqrt(layer.in_features)
            for values in layer.parameters():
                nn.init.uniform_(values, -limit, limit, generator=rng)

    def forward(self, x: Tensor, noise: torch.Generator | None = None) -> Tensor:
        """``(n, widths[-1])``; with dropout if there is a source of ``noise``."""
        *hidden, last = self.layers
        for layer in hidden:
            x = torch.relu(layer(x))
            x = x if noise is None else dropout(x, noise)
        out: Tensor = last(x)
        return out


def dropout(x: Tensor, noise: torch.Generator) -> Tensor:
    """``x`` with half of its entries, chosen at random, set to zero and the others doubled."""
    # One random bit per entry: bernoulli_ draws a word each, a third of the training time.
    n_words = math.ceil(x.numel() / 64)
    words = torch.empty(n_words, dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None, generator=noise)
    shifts = torch.arange(8, dtype=torch.uint8, device=x.device)
    bits = (words.view(torch.uint8)[:, None] >> shifts) & 1
    return x * bits.flatten()[: x.numel()].view(x.shape).mul(2).to(x.dtype)


@dataclass(frozen=True, eq=False)
class NetworkClassifier:
    """NetworkClassifier applies networks one after the other; the last one gives a logit."""

    parts: tuple[Network, ...]
    device: str = "cpu"

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """``(n,)``: σ(logit)."""
        out = []
        with torch.no_grad(), one_thread():
            for start in range(0, len(features), 8192):
                x = features[start : start + 8192]
                h = torch.tensor(x, dtype=torch.float32, device=self.device)
                for part in self.parts:
                    h = part(h)
                out.append(torch.sigmoid(h.double()).flatten().cpu())
        return torch.cat(out).numpy() if out else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Training:
    """Training holds what one training uses: data, two random generators, a schedule.

    Attributes
    ----------
    rng
        Weights and the order of people; on the CPU, so that it does not depend on the device.
    noise
        Dropout; on the device.
    """

    features: Tensor
    target: Tensor
    group: Tensor
    rng: torch.Generator
    noise: torch.Generator
    schedule: Schedule
    device: str

    @classmethod
    def start(cls, examples: Examples, *, schedule: Schedule, seed: int, device: str) -> Training:
        """Check ``examples`` and put them on ``device``."""
        examples.check()
        return cls(
            features=torch.tensor(examples.features, dtype=torch.float32, device=device),
            target=torch.tensor(examples.target, dtype=torch.float32, device=device),
            group=torch.tensor(examples.group, dtype=torch.float32, device=device),
            rng=torch.Generator().manual_seed(seed),
            noise=torch.Generator(device).manual_seed(seed),
            schedule=schedule,
            device=device,
        )

    def network(self, *widths: int) -> Network:
        """A new network on the device."""
        return Network(widths, self.rng).to(self.device)

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor, float]]:
        """Features, targets, groups and learning rate of each step."""
        for rows, rate in self.schedule.batches(len(self.target), self.rng):
            at = rows.to(self.device)
            yield self.features[at], self.target[at], self.group[at], rate


class Descent:
    """Descent runs Adam on the parameters of some networks."""

    def __init__(self, *networks: Network) -> None:
        parameters = [p for network in networks for p in network.parameters()]
        self._adam = torch.optim.Adam(parameters, fused=True)

    def step(self, loss: Tensor, rate: float) -> None:
        """One step down the gradient of ``loss``."""
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types there
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: sums do not depend on the machine, trainings run in parallel."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
