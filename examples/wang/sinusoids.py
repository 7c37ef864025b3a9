"""Four sinusoidal references for all eight angles of the honeycomb arm, at 50 Hz, on the plant of the virtual rig.

Problem: the two angles of each segment swing, draw a circle, or draw a figure of eight. Find the tracking error after
the start-up under the configuration law and the predictive law. Symbols: q angles of the segments [rad], RMS over time,
of all angles and of the worst angle. Source: [Wang, sec. IV-C.1, Fig. 13], which shows curves without numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from examples.wang.bench_arm import ARM, BenchArm, Log
from examples.wang.pictures import panels
from examples.wang.references import SINUSOIDS
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.references import JointPath
from soft_dynamics.commands.arguments import file_to_write, number

RATE = 50.0  # [Hz] as in the paper
CATCH_UP = 2.0  # [s] to reach the reference; errors count after twice this time
TARGET = 0.02  # [rad]
LAWS = ('configuration', 'predictive')


def make_law(name: str) -> Any:
    if name == 'predictive':
        return PredictiveLaw(ARM, PredictiveGains(), joints=True)
    return ConfigurationLaw(ARM, ConfigurationGains())


def follow(law: Any, reference: str, seconds: float) -> tuple[Log, np.ndarray]:
    """Return measured and wanted angles (samples, 8) [rad]; time 0 is the start of the reference."""

    def wanted(t: float) -> np.ndarray:
        return np.tile(SINUSOIDS[reference](t), 4)

    arm = BenchArm(law, RATE)
    start = arm.t + CATCH_UP
    times = CATCH_UP + np.arange(0.0, seconds + 0.1, 0.1)
    path = JointPath(arm.t, arm.loop.present(arm.t), times, [wanted(t - CATCH_UP) for t in times])
    arm.loop.follow(arm.t, path)
    log = arm.run(CATCH_UP + seconds)
    log.t = [t - start for t in log.t]
    return log, np.array([wanted(t) for t in log.t])


def errors(log: Log, wanted: np.ndarray) -> np.ndarray:
    """Return the RMS error of each angle [rad]."""
    counts = np.array(log.t) > CATCH_UP
    return np.asarray(np.sqrt(np.mean((np.array(log.q) - wanted)[counts] ** 2, axis=0)))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Four sinusoidal references.')
    parser.add_argument(
        '--seconds', type=number(CATCH_UP + 0.5, 1e3), default=30.0, help='duration of each reference [s]'
    )
    parser.add_argument('--laws', nargs='+', default=LAWS, choices=LAWS)
    parser.add_argument('--figure', type=file_to_write, help='PNG of the result')
    options = parser.parse_args(argv)

    print(f'paper: {RATE:.0f} Hz, curves only (Fig. 13); wanted here: RMS <= {TARGET} rad')
    with panels(options.figure, (2, 2), (7.2, 4.6)) as axes:
        for axis, reference in zip(axes, SINUSOIDS, strict=True):
            for law in options.laws:
                log, wanted = follow(make_law(law), reference, options.seconds)
                rms = errors(log, wanted)
                whole = np.sqrt(np.mean(rms**2))
                print(f'{reference:16s}{law:14s} RMS {whole:.4f} rad, worst angle {rms.max():.4f} rad')
            if axis is not None:
                lines = axis.plot(log.t, np.array(log.q)[:, ::2], lw=0.8, color='C0')
                lines += axis.plot(log.t, np.array(log.q)[:, 1::2], lw=0.8, color='C1')
                dashed = axis.plot(log.t, wanted[:, :2], '--', color='k', lw=0.8)
                axis.set(title=f'{reference}, {law}', xlabel='t [s]', ylabel='angle [rad]')
        if axes[0] is not None:
            named = [lines[0], lines[4], dashed[0]], ['first angles', 'second angles', 'reference']
            axes[0].figure.legend(*named, loc='outside lower center', ncols=3)


if __name__ == '__main__':
    main()
