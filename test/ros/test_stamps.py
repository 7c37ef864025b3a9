"""Wrong and out-of-order stamps, sent to a state_estimator in this process: later samples do not suffer."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy

from soft_dynamics.timing.stamp_clock import StampClock
from soft_estimation.nodes.state_estimator import StateEstimator
from soft_estimation.scheduler import HOLD_NS, Ready, Sample

START_NS, STEP_NS, HOUR_NS = 10**18, 10_000_000, 3_600_000_000_000
KINDS = {
    'mocap': 'mocap',
    'pressure': 'pressure',
    'plate1': 'mocap',
}  # of a frame, of pressures, of a single body


class Told:
    """Feeds samples to a node with a clock of its own, and records the steps of those that enter the filter."""

    def __init__(self, node: Any, monkeypatch: pytest.MonkeyPatch, ahead_ns: int | None = 0) -> None:
        self.node, self.entered, self._clock_ns = node, dict[str, list[float]](), 0
        self._ahead_ns = ahead_ns  # clock minus sample time; None: the clock stands at 0
        monkeypatch.setattr(node, '_clock_ns', lambda: self._clock_ns)
        monkeypatch.setattr(node._inputs, 'feed', self._note)

    def __call__(self, name: str, step: float, leap_ns: int = 0) -> None:
        stamp_ns = START_NS + round(step * STEP_NS) + leap_ns
        if self._ahead_ns is not None:
            self._clock_ns = START_NS + round(step * STEP_NS) + self._ahead_ns
        self.node._on_sample(Sample(name, KINDS[name], stamp_ns, None))

    def _note(self, _filter: Any, ready: Ready) -> bool:
        step = (ready.sample.stamp_ns - START_NS) / STEP_NS
        self.entered.setdefault(ready.sample.name, []).append(step)
        return False


def started(*parameters: str) -> Iterator[StateEstimator]:
    arguments = [each for name in ('autostart:=false', *parameters) for each in ('-p', name)]
    rclpy.init(args=['--ros-args', *arguments])
    node = StateEstimator()
    try:
        node.trigger_configure()
        node.trigger_activate()
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def live() -> Iterator[StateEstimator]:
    yield from started()


@pytest.fixture
def at_samples() -> Iterator[StateEstimator]:
    yield from started('at_samples:=true')


def test_one_stamp_of_the_future_is_refused_and_costs_no_other_sample(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = Told(live, monkeypatch)
    for name in KINDS:
        tell(name, 0, HOUR_NS)
    assert live._refused == len(KINDS)
    assert 'stamp is 3600.000 s ahead of the clock' in live._refusal
    for step in range(1, 50):
        for name in KINDS:
            tell(name, step)
    assert tell.entered == {name: list(range(1, 50)) for name in KINDS}
    assert live._refused == len(KINDS)


def test_a_stamp_that_is_a_little_ahead_costs_no_other_sample(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = Told(live, monkeypatch)
    for step in range(50):
        tell('mocap', step, 9 * STEP_NS if step == 10 else 0)
    assert len(tell.entered['mocap']) == 50


def test_samples_in_the_wrong_order_enter_and_fast_ones_are_thinned_all_the_same(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, count = Told(live, monkeypatch), 300
    for step in range(0, count, 3):
        for late in (2, 0, 1):
            tell('pressure', step + late)
    assert sorted(tell.entered['pressure']) == list(range(count))
    for step in range(count):  # three kilohertz, in batches of ten, reversed
        for k in reversed(range(30)):
            tell('mocap', step + (k + 0.5) / 30)
    most = live._setup.config.rate * STEP_NS * 1e-9 * count
    assert 0.9 * most < len(tell.entered['mocap']) < 1.1 * most


@pytest.mark.parametrize('ahead_ns', [0, 24 * HOUR_NS, None], ids=['live', 'of yesterday', 'no clock'])
def test_with_at_samples_order_outlives_a_stamp_of_the_future(
    at_samples: Any, monkeypatch: pytest.MonkeyPatch, ahead_ns: int | None
) -> None:
    """In order of measurement, from an old bag without clock, and with a clock that never advances."""
    tell = Told(at_samples, monkeypatch, ahead_ns)
    for step in range(0, 60, 2):
        for name in KINDS:
            tell(name, step + 1)
            if step == 20:
                tell(name, step + 1, HOUR_NS)
            tell(name, step)
    assert at_samples._refused == len(KINDS)
    last = 59 - HOLD_NS // STEP_NS
    assert tell.entered == {name: list(range(last + 1)) for name in KINDS}


@pytest.mark.parametrize('step', [-3600.0, -0.2, 0.2, 3600.0])
def test_a_wall_clock_that_is_set_starts_the_estimate_again(
    live: Any, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """Otherwise samples from before a step back look new, and the state advances without the sensors."""
    clocks = {'wall': START_NS * 1e-9, 'boot': 0.0}
    monkeypatch.setattr(
        live, '_stamps', StampClock(0.1, lambda: round(clocks['wall'] * 1e9), lambda: clocks['boot'])
    )
    now = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=round(clocks['wall'] * 1e9)))
    now.ros_time_is_active = False
    monkeypatch.setattr(live, '_clock', now)
    before = live._estimator

    def run(duration: float) -> None:
        for _ in range(round(duration / 0.01)):
            clocks['wall'] += 0.01
            clocks['boot'] += 0.01
            live._clock_ns()

    run(1.0)
    assert live._estimator is before
    clocks['wall'] += step
    run(0.01)
    after = live._estimator
    assert after is not before
    run(1.0)
    assert live._estimator is after
