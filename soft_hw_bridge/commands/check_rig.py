"""Check plausibility and speed of the virtual rig: prints the tables of docs/benchmarks/virtual_rig.md.

Compares the plant with references that it was not built from: the equations of `soft_dynamics` and the results of Wang
et al. Run `python -m soft_hw_bridge.commands.check_rig`; it has no options.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from scipy.optimize import curve_fit

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import load_description
from soft_hw_bridge.rig.config import RigConfig
from soft_hw_bridge.rig.plant import Plant
from soft_hw_bridge.rig.virtual_rig import Rig

SIDEWAYS = [9.81, 0.0, 0.0]  # gravity [m/s^2] for a robot on its side
REPORTED = {0.0: 0.006, 0.5: 0.015}  # tip load [kg]: mean error of the joint angles [rad] [Wang, sec. IV-B.2]
PULL = 12.0  # [N] sideways at the tip, to raise it
SWING_TIME = 6.0  # [s]
RUN_TIME = 5.0  # [s] of a run for speed


class Mode(NamedTuple):
    """The slowest mode about a pose; creep has a time constant instead of a frequency."""

    frequency: float  # [Hz]
    damping_ratio: float
    time_constant: float  # [s]

    def __str__(self) -> str:
        if self.frequency:
            return f'{self.frequency:.2f} Hz, ζ = {self.damping_ratio:.3f}'
        return f'creeps, {self.time_constant:.3g} s'


class Fall(NamedTuple):
    """Fall of a straight robot on its side."""

    freedoms: int
    sag: float  # [m] of the tip
    model_sag: float
    apart: float  # [m] distance between the tips of plant and model
    settled: float  # [s] until the tip stays within 1 % of the sag
    energy_rise: float  # [J] largest rise between two samples; zero for a passive robot
    mode: Mode | None  # about the final pose; None for discs, whose threads have neutral directions
    model_mode: Mode | None


class Fit(NamedTuple):
    """Fit of a e^(-b t) sin(2 pi f t - c) to the swing, as in the paper."""

    frequency: float  # [Hz]
    decay: float  # [1/s]
    explained: float  # explained fraction of the variance


class Swing(NamedTuple):
    """Swing of the honeycomb arm after release, with its tip raised in the plane x = 0."""

    raised: float  # [m]
    difference: float  # [rad] mean, of the joint angles of plant and model
    fits: dict[str, tuple[Fit, Fit]]  # by segment: plant, model


class Speed(NamedTuple):
    """CPU of a rig without clients."""

    step: float  # [s] CPU per step of the plant
    plant: float  # simulated over CPU seconds, without devices
    rig: float  # the same with devices, in lock-step
    rig_wall: float  # simulated over elapsed seconds
    share: float  # share of one core, in real time
    factor: float  # simulated over elapsed seconds, in real time
    slips: int


def slowest(poles: Array) -> Mode:
    """Return the mode of the pole [1/s] nearest to the imaginary axis."""
    pole = poles[np.argmax(poles.real)]
    is_creep = abs(pole.imag) < 1e-6 * abs(pole)
    frequency = 0.0 if is_creep else float(abs(pole.imag) / (2 * np.pi))
    return Mode(frequency, float(-pole.real / abs(pole)), float(-1.0 / pole.real))


def plant_poles(plant: Plant) -> Array:
    """Return the poles [1/s] of the plant about its pose."""
    n = 2 * plant.model.nv
    A = np.zeros((n, n))
    mujoco.mjd_transitionFD(plant.model, plant.data, 1e-6, 1, A, None, None, None)
    factors = np.linalg.eigvals(A).astype(complex)
    return np.asarray(np.log(factors[np.abs(factors) > 1e-6]) / plant.model.opt.timestep)


def model_poles(model: sd.Robot, q: Array) -> Array:
    """Return the poles [1/s] of the model about a pose at rest."""
    zero = np.zeros(model.nq)
    A = model.linearize(q, zero, model.inverse_dynamics(q, zero, zero))[0]
    moving = np.arange(0 if model.description.base.type == 'fixed' else 6, model.nq)
    both = np.concatenate([moving, moving + model.nq])
    return np.asarray(np.linalg.eigvals(A[np.ix_(both, both)]))


def fall(name: str) -> Fall:
    """Release a straight robot on its side and simulate until it rests."""
    of_discs = name == 'fabric_arm'  # on its side by its file; creeps for minutes
    model = sd.load(name, {} if of_discs else {'gravity': SIDEWAYS})
    duration, step, model_step = (600.0, 5e-3, 2e-3) if of_discs else (20.0, 1e-3, 5e-3)
    plant = Plant(model.description, step)
    X_WB, start = plant.poses()[0], plant.poses()[-1, :3, 3]
    tips, energies = [start], [plant.energy()]
    for _ in range(400):
        plant.advance(duration / 400)
        tips.append(plant.poses()[-1, :3, 3])
        energies.append(plant.energy())
    q0 = np.zeros(model.nq)
    q = model.simulate(q0, q0, None, [0.0, duration], step=model_step).q[-1]
    model_tip = (X_WB @ model.pose(q, 'tip'))[:3, 3]
    sag = float(np.linalg.norm(tips[-1] - start))
    away = np.flatnonzero(np.linalg.norm(np.array(tips) - tips[-1], axis=1) > 0.01 * sag)
    return Fall(
        plant.model.nv,
        sag,
        float(np.linalg.norm(model_tip - start)),
        float(np.linalg.norm(model_tip - tips[-1])),
        duration * float(away[-1] + 1) / 400,
        float(np.diff(energies).max()),
        None if of_discs else slowest(plant_poles(plant)),
        None if of_discs else slowest(model_poles(model, q)),
    )


def joint_angles(X: Array) -> Array:
    """Angles about y and x (..., segments, 2) of poses (..., frames, 4, 4) of a chain of universal joints."""
    R = np.matmul(np.swapaxes(X[..., :-1, :3, :3], -1, -2), X[..., 1:, :3, :3])
    about_y = np.arctan2(-R[..., 2, 0], R[..., 0, 0])
    about_x = np.arctan2(-R[..., 1, 2], R[..., 1, 1])
    return np.stack([about_y, about_x], axis=-1)


def swing(load: float) -> Swing:
    """Pull the tip of the honeycomb arm aside and release it; model and plant start equal. [Wang, sec. IV-B.2]"""
    model = sd.load('honeycomb_arm').with_tip_load(load)
    plant = Plant(model.description)
    lowest = plant.poses()[-1, 2, 3]
    tip = plant.model.site('segment4').bodyid[0]
    plant.data.xfrc_applied[tip, 1] = PULL
    plant.advance(20.0)
    plant.data.xfrc_applied[tip, 1] = 0.0
    t: Array = np.linspace(0.0, SWING_TIME, 301, dtype=np.float64)
    poses = [plant.poses()]
    for dt in np.diff(t):
        plant.advance(dt)
        poses.append(plant.poses())
    of_plant = joint_angles(np.array(poses))
    q0 = of_plant[0].ravel()
    of_model = model.simulate(q0, 0 * q0, None, t, step=1e-3).q.reshape(of_plant.shape)
    names = [segment.name for segment in model.description.segments]
    return Swing(
        float(poses[0][-1, 2, 3] - lowest),
        float(np.abs(of_plant - of_model).mean()),
        {name: (fit(t, of_plant[:, k, 1]), fit(t, of_model[:, k, 1])) for k, name in enumerate(names)},
    )


def decay(t: Array, a: float, b: float, f: float, c: float) -> Array:
    """a e^(-b t) sin(2 pi f t - c)"""
    return a * np.exp(-b * t) * np.sin(2 * np.pi * f * t - c)


def fit(t: Array, angle: Array) -> Fit:
    """Fit a decaying sine to a joint angle."""
    bounds = ((-2.0, 0.0, 0.5, -np.pi), (2.0, 10.0, 2.0, 0.0))
    p = curve_fit(decay, t, angle, p0=(angle[0], 0.5, 1.0, -np.pi / 2), bounds=bounds)[0]
    return Fit(float(p[2]), float(p[1]), float(1.0 - np.var(angle - decay(t, *p)) / np.var(angle)))


def speed(name: str) -> Speed:
    """Measure the plant alone, the rig in lock-step, and the rig in real time."""
    plant = Plant(load_description(name))
    alone = time.process_time()
    plant.advance(RUN_TIME)
    alone = time.process_time() - alone
    with Rig(RigConfig(robot=name, pace='stepped')) as rig:
        wall, cpu = time.perf_counter(), time.process_time()
        rig.advance(RUN_TIME)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    with Rig(RigConfig(robot=name)) as rig:
        stop = threading.Event()
        thread = threading.Thread(target=rig.run, args=(stop.is_set,))
        real_wall, real_cpu = time.perf_counter(), time.process_time()
        thread.start()
        time.sleep(RUN_TIME)
        stop.set()
        thread.join()
        real_wall, real_cpu = time.perf_counter() - real_wall, time.process_time() - real_cpu
        factor, slips = rig.plant.t / real_wall, rig.slips
    step = alone / RUN_TIME * plant.model.opt.timestep
    return Speed(step, RUN_TIME / alone, RUN_TIME / cpu, RUN_TIME / wall, real_cpu / real_wall, factor, slips)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ['---'] * len(head), *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def fall_row(name: str) -> list[str]:
    f = fall(name)
    lengths = [f'{1e3 * x:.1f} mm' for x in (f.sag, f.model_sag, f.apart)]
    modes = [str(mode or 'creeps') for mode in (f.mode, f.model_mode)]
    return [name, str(f.freedoms), *lengths, f'{f.settled:.1f} s', f'{max(f.energy_rise, 0.0):.0e} J', *modes]


def swing_rows(load: float, result: Swing) -> list[list[str]]:
    rows = []
    for segment, (plant, model) in result.fits.items():
        figures = (plant.frequency, model.frequency, plant.decay, model.decay, plant.explained)
        rows.append([f'{load:g} kg', segment, *(f'{x:.3f}' for x in figures)])
    return rows


def speed_row(name: str) -> list[str]:
    s = speed(name)
    factors = [f'{x:.1f} x' for x in (s.plant, s.rig, s.rig_wall)]
    return [
        name,
        f'{1e6 * s.step:.0f} µs',
        *factors,
        f'{100 * s.share:.0f} %',
        f'{s.factor:.3f}',
        str(s.slips),
    ]


FALL = (
    'robot',
    'freedoms',
    'sag',
    'sag, model',
    'tips apart',
    'settled in',
    'energy rises by',
    'slowest mode',
    'slowest mode, model',
)
SWING = ('load', 'segment', 'f [Hz]', 'f, model', 'decay [1/s]', 'decay, model', 'R²')
ERROR = (
    'load',
    'tip raised by',
    'mean error, plant against model',
    'mean error, real arm against model, in the paper',
)
SPEED = ('robot', 'step', 'plant', 'rig', 'rig, elapsed', 'core in real time', 'real-time factor', 'slips')


def main(args: Sequence[str] | None = None) -> None:
    argparse.ArgumentParser(description=__doc__).parse_args(args)
    names = sd.robot_names()
    print('Fall of a robot on its side\n\n' + table(FALL, map(fall_row, names)))
    swings = {load: swing(load) for load in REPORTED}
    rows = [row for load, result in swings.items() for row in swing_rows(load, result)]
    print('Free swing of the honeycomb arm\n\n' + table(SWING, rows))
    rows = [
        [f'{load:g} kg', f'{1e3 * x.raised:.0f} mm', f'{x.difference:.4f} rad', f'{REPORTED[load]:g} rad']
        for load, x in swings.items()
    ]
    print(table(ERROR, rows))
    print('Speed\n\n' + table(SPEED, map(speed_row, names)))


if __name__ == '__main__':
    main()
