"""From the bytes of each interrogator to points and curvature, in host time."""

import time

import numpy as np
import pytest

from soft_dynamics.diagnostics import ERROR, OK, WARN
from soft_hw_bridge.emulators.fbgs import FbgsEmulator
from soft_hw_bridge.emulators.odisi import OdisiEmulator
from soft_hw_bridge.emulators.shape import ShapeEmulator
from soft_hw_bridge.fiber.config import CoresConfig, FbgsConfig, FiberConfig, OdisiConfig
from soft_hw_bridge.fiber.stream import FiberStream

N = 41
S = 5e-3 * np.arange(N)
KAPPA = 6.0  # [1/m] about y: bends towards +x
CIRCLE = np.column_stack([1 - np.cos(KAPPA * S), np.zeros(N), np.sin(KAPPA * S)]) / KAPPA
RADIUS = 2e-3
ANGLES = np.radians([0.0, 120.0, 240.0])
CORES = CoresConfig(radius=(RADIUS,) * 3, angle=tuple(ANGLES))
PATIENCE_S = 30.0


def core_microstrain(angle):
    """Return the strain of a core on the outer side of the bend, from the lengths of concentric arcs."""
    return -1e6 * KAPPA * RADIUS * np.cos(angle) * np.ones(N)


def send_points(device, now_ns):
    device.send(now_ns, S, CIRCLE)


def send_curvature(device, now_ns):
    device.send(now_ns, S, bending=np.tile([0.0, KAPPA], (N, 1)))


def send_odisi(device, now_ns):
    lost = core_microstrain(ANGLES[1])
    lost[10:12] = np.nan
    device.send(now_ns, 1, [*core_microstrain(ANGLES[0]), *lost[::-1]])
    device.send(now_ns, 2, core_microstrain(ANGLES[2]).tolist())


def send_strain(device, now_ns):
    device.send_strain(now_ns, np.array([core_microstrain(angle) for angle in ANGLES]))


def send_shape(device, now_ns):
    device.send_shape(now_ns, [(np.full(5, KAPPA), np.zeros(5), CIRCLE)])


CASES = {
    'points': (ShapeEmulator, send_points, FiberConfig()),
    'odisi': (
        lambda: OdisiEmulator({1: {'a': N, 'b': N}, 2: {'c': N}}, pitch_mm=5.0, rate_hz=100),
        send_odisi,
        FiberConfig(
            'odisi',
            cores=CORES,
            odisi=OdisiConfig((1, 1, 2), ('a', 'b', 'c'), (False, True, False)),
            max_gap=0.02,
        ),
    ),
    'fbgs_strain': (
        FbgsEmulator,
        send_strain,
        FiberConfig('fbgs_strain', cores=CORES, fbgs=FbgsConfig(tuple(S))),
    ),
    'fbgs_shape': (
        FbgsEmulator,
        send_shape,
        FiberConfig('fbgs_shape', fbgs=FbgsConfig(tuple(np.linspace(0, S[-1], 5)), point_spacing=5e-3)),
    ),
}


def stream_of(device, config, **changes):
    fields = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return FiberStream(FiberConfig(**(fields | {'port': device.port} | changes)))


def shapes_of(device, send, stream, condition=lambda shapes: len(shapes) >= 5):
    shapes = []
    deadline = time.monotonic() + PATIENCE_S
    while not condition(shapes):
        assert time.monotonic() < deadline, f'nothing after {PATIENCE_S} s: {stream.status()}'
        send(device, time.time_ns())
        shapes += stream.poll(0.02)
    return shapes


@pytest.mark.parametrize('case', CASES)
def test_a_bent_fiber_is_a_circle_whatever_sends_it(case):
    make, send, config = CASES[case]
    device = make()
    stream = stream_of(device, config, offset=0.1)
    try:
        shape = shapes_of(device, send, stream)[-1]
        shapes_of(device, send, stream, lambda _: stream.status()[:2] == (OK, 'streaming'))
    finally:
        stream.close()
        device.close()
    np.testing.assert_allclose(shape.frame.s, S + 0.1, atol=1e-6)
    np.testing.assert_allclose(shape.frame.p_FC_F, CIRCLE, atol=2e-6)
    if shape.frame.curvature_C is not None:
        np.testing.assert_allclose(shape.frame.curvature_C, np.tile([0.0, KAPPA, 0.0], (N, 1)), atol=1e-3)
    assert abs(time.time_ns() - shape.stamp_ns) < PATIENCE_S * 1e9


def test_curvature_alone_gives_the_points():
    device = ShapeEmulator()
    stream = stream_of(device, FiberConfig())
    try:
        shape = shapes_of(device, send_curvature, stream)[-1]
    finally:
        stream.close()
        device.close()
    np.testing.assert_allclose(shape.frame.p_FC_F, CIRCLE, atol=1e-6)


def test_trouble_is_told():
    device = ShapeEmulator()
    stream = stream_of(device, FiberConfig())
    try:
        shapes_of(device, send_points, stream)
        device.faults.untracked = frozenset({'fiber'})
        unable = (WARN, 'the device reports that it cannot measure')
        shapes_of(device, send_points, stream, lambda _: stream.status()[:2] == unable)
        assert stream.invalid > 0
        device.faults.clear()
        device.faults.frozen = True
        still = (ERROR, 'connected, but no new frames')
        shapes_of(device, send_points, stream, lambda _: stream.status()[:2] == still)
        device.faults.clear()
        shapes_of(device, send_points, stream, lambda _: stream.status().level == OK)
    finally:
        stream.close()
        device.close()
    assert stream.status()[:2] == (ERROR, 'closed')


def test_wrong_segment_is_told():
    make, send, config = CASES['odisi']
    device = make()
    stream = stream_of(device, config, odisi=OdisiConfig((1, 1, 2), ('a', 'b', 'x')))
    try:
        shapes_of(device, send, stream, lambda _: "no segment 'x' on channel 2" in stream.status().message)
    finally:
        stream.close()
        device.close()


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'protocol': 'luna'}, 'protocol must be one of shp1, odisi, fbgs_strain, fbgs_shape'),
        ({'port': -1}, 'port'),
        ({'max_gap': 0.0}, 'max_gap'),
        ({'protocol': 'odisi'}, 'cores must be three or more'),
        ({'protocol': 'odisi', 'cores': CORES}, 'odisi.channels must have 3 entries'),
        (
            {'protocol': 'odisi', 'cores': CORES, 'odisi': OdisiConfig((1, 1, 1), ('a',))},
            'segments and reverse',
        ),
        ({'protocol': 'fbgs_strain', 'cores': CORES}, 'fbgs.gratings'),
        ({'protocol': 'fbgs_shape', 'fbgs': FbgsConfig(point_spacing=0.0)}, 'point_spacing'),
    ],
)
def test_nonsense_is_refused(change, problem):
    with pytest.raises(ValueError, match=problem):
        FiberConfig(**change)
