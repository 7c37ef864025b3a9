"""Error of the estimated push on the tip of the virtual honeycomb arm, which differs from the model: one table.

python -m benchmarks.external_wrench [--seeds 6]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from benchmarks.estimation_rig import TICK, Devices, Packet, command, feed, model, plant_description
from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.kalman.model_filter import ModelFilter
from soft_estimation.loads.external_wrench import WrenchObserver
from soft_hw_bridge.rig.mujoco_model import TIP_LOAD
from soft_hw_bridge.rig.plant import Plant

PERIOD = 0.05  # [s] between estimates, as in state_estimator
BEGIN, SETTLED, END = 1.0, 1.5, 4.0  # [s] start of the push, start of the evaluation, end of the run
TORQUE, FORCE = 0.3, 5.0  # [N m], [N]
FIRST_SEED = 300


def push(seed: int) -> Array:
    """Return a torque and a force in random directions, W axes (6,)."""
    directions = np.random.default_rng(seed).normal(size=(2, 3))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray((directions / lengths * [[TORQUE], [FORCE]]).ravel())


def record(seed: int, wrench_W: Array) -> list[Packet]:
    """Return the packets of the devices while the arm moves; the push starts at BEGIN."""
    plant = Plant(plant_description(), TICK)
    pressure = command(np.random.default_rng(seed), plant.description.actuation.pressure_max)
    devices, packets, body = Devices(plant, seed + 1000), [], plant.model.body(TIP_LOAD).id
    for k in range(round(END / TICK) + 1):
        packets += devices.packets(k * TICK)
        plant.data.xfrc_applied[body] = np.roll(wrench_W, 3) if k * TICK >= BEGIN else 0.0
        plant.step(pressure(k * TICK))
    return sorted(packets, key=lambda packet: packet.arrival)


def observed(robot: sd.Robot, packets: Sequence[Packet]) -> tuple[Array, Array]:
    """Return times and the wrench on the tip (n, 6) in W axes, from motion capture, pressures and the F/T sensor."""
    mount = robot.description.mount
    turn = np.kron(np.eye(2), pose_from_rpy(mount.position, mount.rpy)[:3, :3])
    estimator, observer, waiting = ModelFilter(robot), WrenchObserver(robot), list(reversed(packets))
    last, times, found = {'pressure': np.zeros(16), 'ft': None}, [], []
    for now in np.arange(PERIOD, END, PERIOD).tolist():
        while waiting and waiting[-1].arrival <= now + 1e-9:
            packet = waiting.pop()
            last[packet.kind] = packet.values
            if packet.kind in ('mocap', 'pressure'):
                feed(estimator, packet)
        state = estimator.estimate(now)
        times.append(now)
        found.append(turn @ observer.feed(now, state.q, state.qd, last['pressure'], last['ft']).wrench)
    return np.array(times), np.array(found)


def errors(robot: sd.Robot, seed: int) -> tuple[float, float]:
    """Return the RMS error of torque [N m] and force [N], from SETTLED on."""
    wrench_W = push(seed)
    t, found = observed(robot, record(seed, wrench_W))
    wrong = (found - wrench_W)[t >= SETTLED]
    torque, force = (float(np.sqrt(np.mean(np.sum(part**2, 1)))) for part in (wrong[:, :3], wrong[:, 3:]))
    return torque, force


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks.external_wrench', description=__doc__)
    parser.add_argument('--seeds', type=int, default=6, help='number of runs, default %(default)d')
    robot = model()
    print(f'| run | torque [N m] of {TORQUE:g} | force [N] of {FORCE:g} |\n| --- | --- | --- |')
    for seed in range(FIRST_SEED, FIRST_SEED + parser.parse_args(arguments).seeds):
        torque, force = errors(robot, seed)
        print(f'| {seed} | {torque:.2f} | {force:.2f} |', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
