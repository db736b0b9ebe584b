"""Is whole-frame prediction ahead of a trained network?

    python -m benchmarks.unet [FOLDER WITH highway.mp4, ocean.mp4 AND carphone.mp4] [--device cuda] [--minutes 3]

A U-Net sees the last four frames and gives the change of the last one. Its loss is the squared error relative to that
of copying, so that calm frames count as much as lively ones. It is trained three ways: on the 400 frames before each
start; on other films alone (stretches of the same film that are scored are never among them, nor is that film); and on
other films first, then on the 400. It is compared with `FramePredictor`, which has the same 400 frames, and copying.
Scored as in `benchmarks.frames`: the 60 frames after each start, at 100 x 100. Needs torch, and a GPU for all but
a quick try.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.frames import SCORED, STARTS, squares
from benchmarks.page import FILM, machine, table, write_section
from psmt import FramePredictor
from psmt.data import GlideFilm
from psmt.experiments.predict_video.settings import LEARN

SIZE, SEEN, BATCH = 100, 4, 16
STRETCHES = {"highway": STARTS, "ocean": (400, 650, 900), "carphone": (59,)}
Film = NDArray[np.float32]


class UNet(nn.Module):
    """Four frames in, the change of the last one out: three scales, two convolutions at each, skip connections."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(_double(a, b) for a, b in zip([SEEN, *widths], widths, strict=False))
        self.up = nn.ModuleList(_double(a + b, b) for a, b in ((widths[2], widths[1]), (widths[1], widths[0])))
        self.last = nn.Conv2d(width, 1, 1)
        # It begins as copying.
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, frames: Tensor) -> Tensor:
        """Changes (n, height, width) of the last of frames (n, SEEN, height, width)."""
        # Only differences matter, in units of the usual change: a network need not learn each film's contrast.
        current = frames[:, -1:]
        scale = (current - frames[:, -2:-1]).square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + 1e-3
        mean = current.mean(dim=(2, 3), keepdim=True)
        values = torch.cat([(frames[:, :-1] - current) / scale, (current - mean) / 0.2], dim=1)
        skips = []
        for k, layer in enumerate(self.down):
            values = layer(functional.avg_pool2d(values, 2, ceil_mode=True) if k else values)
            skips.append(values)
        for layer, skip in zip(self.up, skips[-2::-1], strict=True):
            wide = functional.interpolate(values, size=skip.shape[2:], mode="bilinear", align_corners=False)
            values = layer(torch.cat([wide, skip], dim=1))
        change: Tensor = (self.last(values) * scale)[:, 0]
        return change


def _double(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n in (inputs, outputs):
        layers += [nn.Conv2d(n, outputs, 3, padding=1, padding_mode="replicate"), nn.GroupNorm(4, outputs), nn.SiLU()]
    return nn.Sequential(*layers)


class Budget(NamedTuple):
    """How long a network is trained."""

    minutes: float
    rate: float


def train(net: UNet, films: list[Film], budget: Budget, device: str, seed: int) -> UNet:
    """Return the network after so many minutes of random pieces of films (time, height, width)."""
    rng = np.random.default_rng(seed)
    held = [torch.from_numpy(film).to(device) for film in films]
    optimiser = torch.optim.AdamW(net.parameters(), lr=budget.rate, weight_decay=1e-4)
    begin = time.monotonic()
    net.train()
    while (spent := (time.monotonic() - begin) / (60 * budget.minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = budget.rate * 0.5 * (1 + np.cos(np.pi * spent))
        film = held[rng.integers(len(held))]
        starts = rng.integers(0, len(film) - SEEN, BATCH)
        pieces = torch.stack([film[k : k + SEEN + 1] for k in starts])
        # A mirrored or turned film is a film.
        if rng.integers(2):
            pieces = pieces.flip(-1)
        if rng.integers(2):
            pieces = pieces.flip(-2)
        copied = (pieces[:, -1] - pieces[:, -2]).square().mean(dim=(1, 2)) + 1e-6
        error = (pieces[:, -2] + net(pieces[:, :-1]) - pieces[:, -1]).square().mean(dim=(1, 2))
        optimiser.zero_grad()
        (error / copied).clamp(max=4.0).mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
    return net.eval()


@torch.no_grad()
def network_errors(net: UNet, frames: Film, first: int, device: str) -> NDArray[np.float64]:
    """Mean squared errors (n,) of the frames from `first` on, each from the four before it."""
    held = torch.from_numpy(frames).to(device)
    seen = torch.stack([held[k - SEEN : k] for k in range(first, len(frames))])
    predicted = seen[:, -1] + torch.cat([net(part) for part in seen.split(BATCH)])
    return (predicted - held[first:]).square().mean(dim=(1, 2)).double().cpu().numpy()


def own_errors(frames: Film, first: int) -> NDArray[np.float64]:
    """The same of `FramePredictor`, fitted on the frames before `first`."""
    model, errors = FramePredictor().fit(frames[:first]), []
    for frame in frames[first:]:
        errors.append(float(np.mean((model.predict() - frame) ** 2)))
        model.update(frame)
    return np.array(errors)


def read(path: str, start: int, stop: int) -> Film:
    """Frames start to stop of a film, in luma, at SIZE x SIZE."""
    frames = squares(path, SIZE, stop)
    return np.stack([frame for index, frame in enumerate(frames) if index >= start]).astype(np.float32)


def other_films(folder: Path, film: str, n_frames: int) -> Iterator[Film]:
    """All films but the one that is scored, and built-in ones of several speeds and noises."""
    for name in STRETCHES:
        path = folder / f"{name}.mp4"
        if name != film and path.exists():
            yield read(str(path), 0, n_frames)
    for seed, speed in enumerate((None, 0.3, 0.8, 1.6, 3.0, 6.0)):
        glide = GlideFilm(n_frames=400, seed=200 + seed, speed=speed, noise=0.05 * (seed % 3), size=SIZE)
        yield np.stack([glide[t] for t in range(glide.n_frames)]).astype(np.float32)


def main() -> None:
    """Train and score at every start, print the table, and write it to benchmarks/README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FILM.parent)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=3.0, help="of training: on the 400 frames, on other films")
    parser.add_argument("--width", type=int, default=32, help="channels at the finest scale")
    parser.add_argument("--frames", type=int, default=10_000, help="of each other film, at the most")
    given = parser.parse_args()

    def fresh() -> UNet:
        torch.manual_seed(0)
        return UNet(given.width).to(given.device)

    lines = []
    for name, starts in STRETCHES.items():
        path = given.folder / f"{name}.mp4"
        if not path.exists():
            continue
        brought = train(
            fresh(), list(other_films(given.folder, name, given.frames)), Budget(given.minutes, 1e-3), given.device, 0
        )
        for start in starts:
            first = min(LEARN, start)
            frames = read(str(path), start - first, start + SCORED + 1)
            past = [frames[:first]]
            alone = train(fresh(), past, Budget(given.minutes, 1e-3), given.device, 1)
            tuned = fresh()
            tuned.load_state_dict(brought.state_dict())
            tuned = train(tuned, past, Budget(given.minutes / 3, 3e-4), given.device, 2)
            copied = np.mean((frames[first:-1] - frames[first + 1 :]) ** 2)
            errors = [own_errors(frames, first + 1)]
            errors += [network_errors(net, frames, first + 1, given.device) for net in (alone, brought, tuned)]
            lines.append([f"{name} {start}", *(f"{error.mean() / copied:.3f}" for error in errors)])
            print(*lines[-1], flush=True)
    headers = ["MSE ÷ copying", "**FramePredictor**", "U-Net, the 400 frames", "U-Net, other films", "U-Net, both"]
    page = [
        "## A trained network",
        "    python -m benchmarks.unet [FOLDER] --device cuda",
        f"{SIZE} x {SIZE}, learned from the {LEARN} frames before each start, scored on the {SCORED} after it. Each "
        f"network was trained for {given.minutes:g} minutes on {given.device}, fine-tuned for a third of that.",
        table(headers, lines),
        machine("torch"),
    ]
    print(page[-2])
    write_section("unet", "\n\n".join(page))


if __name__ == "__main__":
    main()
