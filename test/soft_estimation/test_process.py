"""The filter's process model: its base wrench agrees with the dynamics, with exact derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_estimation.kalman.process_model import Process, ProcessNoise, slopes


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm', 'floating_actuator'])
def test_base_wrench_and_its_slopes(name: str) -> None:
    robot, random = sd.load(name), np.random.default_rng(0)
    process, unpressurised = Process(robot, ProcessNoise()), np.zeros(len(robot.chamber_names))
    n, spread = robot.nq, np.full(robot.nq, 0.15)
    if name == 'floating_actuator':
        spread[:6], spread[6:] = 0.4, 0.005  # a tilted base
    x = np.concatenate(
        [robot.rest + spread * random.normal(size=n), 0.05 * random.normal(size=process.size - n)]
    )

    def wrench(rows: Array) -> Array:
        motion = ((row[:n], row[n : 2 * n], process.acceleration(row, unpressurised)) for row in rows)
        return np.array([robot.base_wrench(*each) for each in motion])

    W, H = process.base_wrench(x, unpressurised)
    assert pytest.approx(wrench(x[None])[0], rel=1e-9, abs=1e-9) == W
    expected = slopes(wrench, x)
    assert np.all(np.abs(H - expected) <= 1e-5 * (1.0 + np.abs(expected).max(0)))
