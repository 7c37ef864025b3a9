"""Every safety rule: a command that breaks it, and what comes out. Each test fails without its rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from soft_control.safety import (
    Limits,
    Memory,
    Mode,
    Request,
    State,
    advance,
    begin,
    reference_fault,
    state_fault,
)
from soft_dynamics.description import load_description

LIMITS = Limits(
    pressure_min=-20e3,
    pressure_max=100e3,
    slew=1e6,
    vent_time=2.0,
    state_timeout=0.1,
    coordinate_limit=3.0,
    rate_limit=10.0,
)
DT = 0.01  # [s]
GOOD = State(0.0, np.array([0.1, -0.2]), np.array([0.5, 0.0]))


def run(memory: Memory, request: Request, steps: int = 1) -> Memory:
    for _ in range(steps):
        memory = advance(LIMITS, memory, memory.t + DT, request)
    return memory


def wish(*pressure: float, reference_t: float = 0.0, **fields: Any) -> Request:
    return Request(np.array(pressure), reference_t=reference_t, **fields)


@pytest.fixture
def inflated() -> Memory:
    """Return the state machine while it follows 80 kPa and 40 kPa, one second after the start."""
    memory = run(begin(np.zeros(2), 0.0), wish(80e3, 40e3), 100)
    assert memory.mode is Mode.FOLLOWING
    np.testing.assert_allclose(memory.pressure, [80e3, 40e3])
    return memory


def test_it_starts_vented_and_stays_so_without_a_reference() -> None:
    memory = run(begin(np.zeros(2), 0.0), Request(), 50)
    assert memory.mode is Mode.IDLE
    assert memory.reason == 'no reference yet'
    assert not np.any(memory.pressure)


@pytest.mark.parametrize(('wanted', 'limit'), [(1e9, 100e3), (-1e9, -20e3)])
def test_pressure_limits(wanted: float, limit: float) -> None:
    memory = run(begin(np.zeros(2), 0.0), wish(wanted, 50e3), 200)
    np.testing.assert_allclose(memory.pressure, [limit, 50e3])


def test_slew_limit(inflated: Memory) -> None:
    np.testing.assert_allclose(run(inflated, wish(0.0, 100e3)).pressure, [70e3, 50e3])


def test_a_cycle_held_up_does_not_jump(inflated: Memory) -> None:
    late = advance(LIMITS, inflated, inflated.t + 30.0, wish(0.0, 40e3))
    assert late.pressure[0] == pytest.approx(80e3 - 0.05 * LIMITS.slew)


def test_a_clock_that_goes_back_moves_nothing(inflated: Memory) -> None:
    np.testing.assert_array_equal(advance(LIMITS, inflated, -5.0, wish(0.0, 0.0)).pressure, inflated.pressure)


def test_a_fault_vents_along_the_ramp(inflated: Memory) -> None:
    memory = run(inflated, Request(fault='no state for 0.1 s'))
    assert (memory.mode, memory.reason) == (Mode.VENTING, 'no state for 0.1 s')
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])  # 100 kPa in 2 s
    memory = run(memory, Request(fault='no state for 0.1 s'), 200)
    assert memory.mode is Mode.IDLE
    assert not np.any(memory.pressure)


def test_a_vacuum_is_let_go_along_the_ramp_too() -> None:
    memory = run(begin(np.array([-20e3, 0.0]), 0.0), Request(fault='x'))
    np.testing.assert_allclose(memory.pressure, [-19.5e3, 0.0])


def test_the_ramp_is_never_steeper_than_the_slew_rate() -> None:
    slow = Limits(0.0, 100e3, 10e3, 0.1, 0.1, 3.0, 10.0)
    assert advance(slow, begin(np.array([50e3]), 0.0), DT, Request(fault='x')).pressure[0] == 50e3 - 100.0


def test_after_a_fault_only_a_newer_reference_is_followed(inflated: Memory) -> None:
    faulty = run(inflated, wish(80e3, 40e3, fault='state that jumps'))
    again = run(faulty, wish(80e3, 40e3, reference_t=0.5), 10)
    assert again.mode is Mode.VENTING
    assert again.reason == 'state that jumps'
    assert again.pressure[0] < faulty.pressure[0]
    assert run(again, wish(80e3, 40e3, reference_t=again.t)).mode is Mode.FOLLOWING


@pytest.mark.parametrize('reference_t', [-math.inf, 5.0])
def test_losing_the_reference_vents(inflated: Memory, reference_t: float) -> None:
    memory = run(inflated, Request(reference_t=reference_t))
    assert memory.mode is Mode.VENTING
    assert memory.pressure[0] < 80e3


@pytest.mark.parametrize('wanted', [(math.nan, 1e3), (math.inf, 1e3), (1e3,), (1e3, 1e3, 1e3)])
def test_unusable_commands_vent(inflated: Memory, wanted: tuple[float, ...]) -> None:
    memory = run(inflated, wish(*wanted))
    assert memory.mode is Mode.VENTING
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])
    assert run(memory, wish(80e3, 40e3)).mode is Mode.VENTING


def test_an_emergency_stop_vents_and_stays(inflated: Memory) -> None:
    memory = run(inflated, wish(80e3, 40e3, stop=True))
    np.testing.assert_allclose(memory.pressure, [80e3 - 500.0, 40e3 - 500.0])
    memory = run(memory, wish(80e3, 40e3, reference_t=100.0), 200)
    assert (memory.mode, memory.reason) == (Mode.STOPPED, 'emergency stop')
    assert not np.any(memory.pressure)


def test_a_good_state_is_trusted() -> None:
    later = State(0.01, GOOD.q + 0.01, GOOD.qd)
    assert state_fault(LIMITS, 0.05, later, GOOD) == ''


@pytest.mark.parametrize(
    ('t', 'state', 'fault'),
    [
        (0.0, None, 'no state yet'),
        (0.2, GOOD, 'no state for 0.1 s'),
        (-0.2, GOOD, 'no state for 0.1 s'),  # from the future
        (math.nan, GOOD, 'no state for 0.1 s'),
        (0.0, GOOD._replace(q=np.array([0.1, math.nan])), 'not finite'),
        (0.0, GOOD._replace(qd=np.array([math.inf, 0.0])), 'not finite'),
        (0.0, GOOD._replace(q=np.array([0.1, -3.1])), 'a coordinate beyond 3'),
        (0.0, GOOD._replace(qd=np.array([0.0, -11.0])), 'a rate beyond 10'),
    ],
)
def test_a_bad_state_is_named(t: float, state: State | None, fault: str) -> None:
    assert fault in state_fault(LIMITS, t, state, None)


def test_a_state_that_jumps_is_not_trusted() -> None:
    jumped = State(0.02, GOOD.q + np.array([0.0, 0.21]), GOOD.qd)
    assert state_fault(LIMITS, 0.02, jumped, GOOD) == 'state that jumps'
    assert state_fault(LIMITS, 0.03, jumped._replace(t=0.03), GOOD) == ''


def test_references() -> None:
    before = np.array([0.1, 0.2])
    assert reference_fault(LIMITS, before + 0.05, before, DT) == ''
    assert reference_fault(LIMITS, before, None, 0.0) == ''
    assert reference_fault(LIMITS, before + 0.11, before, DT) == 'reference that jumps'
    assert reference_fault(LIMITS, np.array([0.0, 3.1]), None, 0.0) == 'reference beyond 3'
    assert 'not finite' in reference_fault(LIMITS, np.array([0.0, math.nan]), None, 0.0)


def test_whatever_is_asked_for_limits_and_rates_hold() -> None:
    random = np.random.default_rng(1)
    memory, t = begin(np.zeros(3), 0.0), 0.0
    for _ in range(3000):
        t += random.choice([-1.0, 0.0, 1e-4, 0.01, 0.2, 5.0])
        wanted = random.choice([math.nan, math.inf, -1e12, -5e3, 0.0, 60e3, 1e12], random.integers(2, 5))
        request = Request(
            None if random.random() < 0.05 else wanted if random.random() < 0.3 else np.resize(wanted, 3),
            'x' if random.random() < 0.1 else '',
            t if random.random() < 0.5 else 0.0,
        )
        after = advance(LIMITS, memory, t, request)
        assert np.all((after.pressure >= LIMITS.pressure_min) & (after.pressure <= LIMITS.pressure_max))
        assert np.all(np.abs(after.pressure - memory.pressure) <= 0.05 * LIMITS.slew * (1 + 1e-9))
        memory = after


def test_limits_come_from_the_robot_file() -> None:
    limits = Limits.of(load_description('honeycomb_arm'))
    assert (limits.pressure_max, limits.slew, limits.vent_rate) == (250e3, 2e6, 250e3)
    with pytest.raises(ValueError, match='pressure_min <= 0'):
        Limits(1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0)
