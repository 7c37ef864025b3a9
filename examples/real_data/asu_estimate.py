"""Estimate the state of a real two-segment arm from its plates, and from its four draw-wire encoders alone.

Problem: motion capture sometimes flips the square plates by 180 degrees. It delivers 18 to 28 new samples per second,
with gaps, and its time stamps are off by tens of ms. Two wires run to the middle plate and two to the tip plate.
Symbols: bend v [rad] and length h [m] of a segment, wire lengths l [m], spacing r [m] of a pair of wires. From the
plates: only the normals are used, with z up, and each segment is an arc. From the wires: v = (l_a - l_b)/r and
h = (l_a + l_b)/2, with the offset of the first two seconds. Both are smoothed offline. Source: docs/real_data.md.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from examples.real_data.data import add_data_option
from soft_dynamics.commands.arguments import file_to_write
from soft_dynamics.geometry.se3 import inverse
from soft_dynamics.segments.arc import arc_from_pose
from soft_estimation.differentiate.differentiator import Differentiator, DifferentiatorConfig
from soft_estimation.differentiate.fixed_interval_smoother import smoothed
from soft_estimation.inverse_kinematics.poses import flip_axis, poses_from_normals

PLATES, POSES, WIRES = (17, 24, 31), slice(17, 38), slice(13, 17)  # columns: base, middle, tip; all; volts
VOLT, SPACING, ZERO, STEP = 0.2, 0.043, 2.0, 0.01  # [m/V], [m] of a pair of wires, [s], [s]
NAMES = 'v1 [mrad]', 'h1 [mm]', 'v2 [mrad]', 'h2 [mm]'
NOISE = np.array([3e-3, 2e-4, 3e-3, 2e-4])  # std of samples about the line between their neighbours
CONFIG = DifferentiatorConfig(bandwidth=2.0, noise=1.0)  # for coordinates in units of NOISE


class Found(NamedTuple):
    """v1, h1, v2, h2 as samples (n, 4) at t, as estimates (k, 4) at times; `causal` uses past samples only."""

    t: np.ndarray
    samples: np.ndarray
    times: np.ndarray
    plates: np.ndarray
    causal: np.ndarray
    wires: np.ndarray
    flips: int


def from_plates(rows: np.ndarray) -> tuple[np.ndarray, int]:
    frames, flips = [], 0
    for k in PLATES:
        turned = Rotation.from_quat(rows[:, k + 3 : k + 7])
        R = turned.as_matrix()
        frames.append(poses_from_normals(rows[:, k : k + 3], -R @ flip_axis(R) * np.sign(R[:, 2:, 2])))
        flips += np.count_nonzero((turned[:-1].inv() * turned[1:]).magnitude() > 3.0)
    return np.hstack([arc_from_pose(inverse(a) @ b).q[:, 1:] for a, b in pairwise(frames)]), int(flips)


def from_wires(rows: np.ndarray) -> np.ndarray:
    a, b, d, c = VOLT * rows[:, WIRES].T
    v1, h1, v, h = (a - b) / SPACING, (a + b) / 2.0, (c - d) / SPACING, (c + d) / 2.0
    return np.stack([v1, h1, v - v1, h - h1], 1)


def estimate(path: Path) -> Found:
    rows = np.loadtxt(path, delimiter=',')
    t = rows[:, 0] - rows[0, 0]
    new, pulled = (np.r_[True, np.any(np.diff(rows[:, c], axis=0) != 0.0, 1)] for c in (POSES, WIRES))
    samples, flips = from_plates(rows[new])
    times = np.arange(0.0, min(t[new][-1], t[pulled][-1]), STEP)
    causal, _ = Differentiator(4, CONFIG).follow(t[new], samples / NOISE, times)
    recordings = (t[new], samples), (t[pulled], from_wires(rows[pulled]))
    plates, wires = (np.array([m.q for m in smoothed(at, q / NOISE, times, CONFIG)]) for at, q in recordings)
    wires += (plates - wires)[times < ZERO].mean(0)
    return Found(t[new], samples, times, NOISE * plates, NOISE * causal, NOISE * wires, flips)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument(
        '--plot', metavar='PNG', type=file_to_write, help='write a figure of the first recording'
    )
    add_data_option(parser, 'apr_18_data_collect_1.txt')
    options = parser.parse_args(arguments)
    path, files = options.plot, sorted(options.data.glob('apr*.txt*'))
    found = [(file.name.partition('.')[0], estimate(file)) for file in files]
    for name, f in found:
        causal, smooth = (1e3 * np.abs(np.diff(q, axis=0)).max(0) for q in (f.causal, f.plates))
        off = 1e3 * np.sqrt(np.mean((f.wires - f.plates) ** 2, 0))
        print(f'{name}: {f.flips} flips, gaps up to {np.diff(f.t).max():.2f} s; of {", ".join(NAMES)}:')
        print(f'  largest step in 10 ms: causal {causal.round(2)}, smoothed {smooth.round(2)}')
        print(f'  wires - plates: {off.round(1)} RMS')
    if path:
        from examples.real_data.asu_figure import draw

        draw(path, NAMES, found[0][1])


if __name__ == '__main__':
    main()
