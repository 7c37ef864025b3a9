"""The state of a real two-segment arm: from its plates, and from its four draw-wire encoders alone.

Problem: motion capture flips the square plates by 180 degrees now and then and has 18 to 28 fresh samples a second,
with gaps; two wires run to the middle plate and two to the tip. Symbols: v bend [rad] and h length [m] of a segment, l
wires [m], r distance of a pair. Of the plates only the normal counts, with z up, and each segment is an arc; of the
wires v = (l_a - l_b)/r, h = (l_a + l_b)/2, with the zero of the first two seconds. Both run through the causal
differentiator, which closes the gaps. Source: ASU RISE lab, 4-chamber-softarm-control (MIT), in ../shared/data.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from examples.real_data.data import folder
from soft_estimation.differentiator import Differentiator, DifferentiatorConfig
from soft_estimation.poses import inverse, poses_from_normals
from soft_estimation.segments import arc_from_pose

PLATES, POSES, WIRES = (17, 24, 31), slice(17, 38), slice(13, 17)  # columns: base, middle, tip; all; volts
VOLT, SPACING, ZERO, RATE = 0.2, 0.043, 2.0, 100.0  # [m/V], [m] of a pair of wires, [s], [Hz]
NAMES = 'v1 [mrad]', 'h1 [mm]', 'v2 [mrad]', 'h2 [mm]'


class Found(NamedTuple):
    """Coordinates v1, h1, v2, h2: samples, estimates at times, and how often a plate was taken for turned."""

    t: np.ndarray
    samples: np.ndarray
    times: np.ndarray
    plates: np.ndarray
    wires: np.ndarray
    flips: int


def from_plates(rows: np.ndarray) -> tuple[np.ndarray, int]:
    frames, flips = [], 0
    for k in PLATES:
        R = Rotation.from_quat(rows[:, k + 3 : k + 7]).as_matrix()
        normal = R[:, :, 2] * np.sign(R[:, 2:, 2])
        frames.append(poses_from_normals(rows[:, k : k + 3], -normal))
        flips += np.count_nonzero(np.diff(np.sign(R[:, 1, 1])))
    pairs = (frames[:2], frames[1:])
    arcs = [[arc_from_pose(inverse(a) @ b, None).q[1:] for a, b in zip(*p, strict=True)] for p in pairs]
    return np.concatenate(arcs, 1), int(flips)


def from_wires(rows: np.ndarray) -> np.ndarray:
    a, b, d, c = VOLT * rows[:, WIRES].T
    v1, h1, v, h = (a - b) / SPACING, (a + b) / 2.0, (c - d) / SPACING, (c + d) / 2.0
    return np.stack([v1, h1, v - v1, h - h1], 1)


def estimate(path: Path) -> Found:
    rows = np.loadtxt(path, delimiter=',')
    t = rows[:, 0] - rows[0, 0]
    new = [np.r_[True, np.any(np.diff(rows[:, c], axis=0) != 0.0, 1)] for c in (POSES, WIRES)]
    (samples, flips), lengths = from_plates(rows[new[0]]), from_wires(rows[new[1]])
    times = np.arange(0.0, t[-1], 1 / RATE)
    motions = (t[new[0]], samples, 5e-3), (t[new[1]], lengths, 0.03)
    filters = (Differentiator(4, DifferentiatorConfig(2.0, noise)) for _, _, noise in motions)
    plates, wires = (f.follow(*m[:2], times)[0] for f, m in zip(filters, motions, strict=True))
    wires += (plates - wires)[times < ZERO].mean(0)
    return Found(t[new[0]], samples, times, plates, wires, flips)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--plot', metavar='PNG', help='where to put a figure of the first recording')
    path = parser.parse_args(arguments).plot
    found = [(file.name[:-7], estimate(file)) for file in sorted(folder('asu_two_segment_arm').glob('apr*'))]
    for name, f in found:
        pairs = (f.samples, f.plates[np.searchsorted(f.times[:-1], f.t)]), (f.wires, f.plates)
        noise, off = (1e3 * np.sqrt(np.mean((a - b) ** 2, 0)) for a, b in pairs)
        print(f'{name}: {f.flips} flips, samples - estimate {noise.round(1)}, wires - plates {off.round(1)}')
    if path:
        plot(path, found[0][1])
    print(f'RMS of {", ".join(NAMES)}; longest gap {max(np.diff(f.t).max() for _, f in found):.2f} s')


def plot(path: str, f: Found) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(8.0, 7.0), sharex=True, layout='constrained')
    for k, (ax, name) in enumerate(zip(axes, NAMES, strict=True)):
        ax.plot(f.t, 1e3 * f.samples[:, k], '.', color='0.6', markersize=2, label='plates, samples')
        ax.plot(f.times, 1e3 * f.plates[:, k], label='plates, estimate')
        ax.plot(f.times, 1e3 * f.wires[:, k], label='wires alone')
        ax.set(ylabel=name, xlabel='t [s]' if k == 3 else None)
    axes[0].legend(ncols=3)
    figure.savefig(path)


if __name__ == '__main__':
    main()
