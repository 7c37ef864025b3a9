"""Fast swing of the honeycomb arm: all four segments by 0.3 rad at 12 pi/5 rad/s, on the plant of the virtual rig.

Problem: find the tip speed and the tracking error and delay of the plant under the configuration law of the paper, the
same law with compensation of the valve lag, and the predictive law. Symbols: q angles [rad], swing their amplitude
relative to the reference [%], delay of the angle at the root [ms]. Source: [Wang, sec. IV-C.1, Fig. 14]: the tip
reaches 7 m/s, half a swing takes 0.4 s, with a constant delay that the paper attributes to the valves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from examples.wang.bench_arm import ARM, BenchArm, Log
from examples.wang.pictures import panels
from soft_control.control_loop import Actuate
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.references import JointPath
from soft_dynamics.commands.arguments import file_to_write, number

RATE = 50.0  # [Hz]
AMPLITUDE, OMEGA = 0.3, 12.0 * np.pi / 5.0  # [rad], [rad/s]
LEAD_IN, STEADY = 0.5, 2.0  # [s] until the reference starts; until the swing counts as steady


def laws() -> dict[str, tuple[Any, Actuate]]:
    """Return each law with its actuation options; the second one was tuned by hand for this swing."""
    made_up = ConfigurationGains((0.5,), (1.0,), (1.0,), lookahead=0.02)
    return {
        'configuration': (ConfigurationLaw(ARM, ConfigurationGains()), Actuate()),
        'configuration, lag': (ConfigurationLaw(ARM, made_up), Actuate(lag_speedup=2.0)),
        'predictive': (PredictiveLaw(ARM, PredictiveGains(), joints=True), Actuate()),
    }


def reference(t: np.ndarray) -> np.ndarray:
    """The second angle of each segment [rad]."""
    return np.asarray(AMPLITUDE * np.sin(OMEGA * t))


def swing(law: Any, actuate: Actuate, seconds: float) -> Log:
    arm = BenchArm(law, RATE, actuate=actuate)
    start = arm.t + LEAD_IN
    times = LEAD_IN + np.arange(0.0, seconds + 0.05, 0.05)
    points = np.zeros((times.size, ARM.nq))
    points[:, 1::2] = reference(times - LEAD_IN)[:, None]
    arm.loop.follow(arm.t, JointPath(arm.t, arm.loop.present(arm.t), times, points))
    log = arm.run(LEAD_IN + seconds)
    log.t = [t - start for t in log.t]
    return log


def phasor(t: np.ndarray, y: np.ndarray) -> complex:
    """Return amplitude and phase of the swing in a signal, as a complex number."""
    basis = np.stack([np.cos(OMEGA * t), np.sin(OMEGA * t), np.ones_like(t)], 1)
    a, b, _ = np.linalg.lstsq(basis, y, rcond=None)[0]
    return complex(a, -b)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Fast swing of the honeycomb arm.')
    parser.add_argument('--seconds', type=number(1.0, 1e3), default=8.0, help='duration of the swing [s]')
    parser.add_argument('--figure', type=file_to_write, help='PNG of the result')
    options = parser.parse_args(argv)

    print('paper: 50 Hz, 0.3 sin(12 pi/5 t) rad, tip up to 7 m/s, half a swing in 0.4 s, a constant delay')
    with panels(options.figure, (1, 3), (7.2, 2.6)) as axes:
        for axis, (name, law) in zip(axes, laws().items(), strict=True):
            log = swing(*law, options.seconds)
            t, q, speed = np.array(log.t), np.array(log.q)[:, 1::2], np.array(log.speed)
            late = t > min(STEADY, 0.5 * options.seconds)
            rms = np.sqrt(np.mean((q - reference(t)[:, None])[late] ** 2))
            root = phasor(t[late], q[late, 0]) / phasor(t[late], reference(t[late]))
            print(
                f'{name:20s} RMS {rms:.3f} rad, root: swing {100 * abs(root):.0f} %, '
                f'delay {-1e3 * np.angle(root) / OMEGA:.0f} ms, tip up to {speed.max():.1f} m/s'
            )
            if axis is not None:
                axis.plot(t, q, lw=0.8)
                axis.plot(t, reference(t), 'k--', lw=0.8)
                axis.set(title=name, xlabel='t [s]', ylabel='second angles [rad]', xlim=(0.0, 4.0))


if __name__ == '__main__':
    main()
