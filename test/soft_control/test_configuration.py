"""The configuration-space controller, alone and in closed loop with a robot whose parameters are off by 10 %."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from closed_loop import Rig, perturbed, robot_of

from soft_control.control_loop import Actuate, ControlLoop
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw, stiffness_scale
from soft_control.references import JointPath
from soft_control.safety.state_machine import Mode, State

HONEYCOMB = 'honeycomb_arm'
ZERO = ConfigurationGains((0.0,), (0.0,), (0.0,))
REFERENCES: dict[
    str, Callable[[float], tuple[float, float]]
] = {  # of both joints of every segment [Wang, IV-C]
    'first swings': lambda t: (0.3 * np.sin(2 * np.pi / 15 * t), 0.1),
    'second swings': lambda t: (0.1, 0.3 * np.sin(2 * np.pi / 15 * t)),
    'circle': lambda t: (0.3 * np.cos(np.pi / 8 * t), 0.3 * np.sin(np.pi / 8 * t)),
    'eight': lambda t: (0.3 * np.sin(np.pi / 8 * t), 0.2 * np.sin(np.pi / 4 * t)),
}


def loop_of(
    name: str, gains: ConfigurationGains | None = None, actuate: Actuate | None = None
) -> ControlLoop:
    robot = robot_of(name)
    return ControlLoop(robot, ConfigurationLaw(robot, gains or ConfigurationGains()), actuate)


def tracking_rms(rig: Rig, wanted: Callable[[float], np.ndarray], duration: float) -> float:
    """Approach the reference in 2 s, follow it; return the worst coordinate's RMS error after the approach."""
    times = np.arange(2.0, duration + 2.0, 0.1)
    start = rig.loop.present(0.0)
    rig.loop.follow(0.0, JointPath(0.0, start, times, [wanted(t - 2.0) for t in times]))
    seen = rig.run(duration, lambda rig, memory: (rig.t, rig.q - wanted(rig.t - 2.0), memory.mode))
    assert {mode for _, _, mode in seen} == {Mode.FOLLOWING}
    return float(np.sqrt(np.mean([e**2 for t, e, _ in seen if t > 3.0], axis=0)).max())


@pytest.mark.parametrize('name', REFERENCES)
def test_the_four_references_of_the_paper(name: str) -> None:
    def wanted(t: float) -> np.ndarray:
        return np.tile(REFERENCES[name](t), 4)

    assert tracking_rms(Rig(perturbed(HONEYCOMB), loop_of(HONEYCOMB), 50.0), wanted, 8.0) <= 0.02


def test_six_joints_with_links_between() -> None:
    rig = Rig(
        perturbed('pneumatic_arm'), loop_of('pneumatic_arm', actuate=Actuate(co_contraction=0.3)), 100.0
    )
    assert tracking_rms(rig, lambda t: np.full(6, 0.15 * np.sin(t)), 5.0) <= 0.01


class LateRig(Rig):
    """States arrive two cycles late."""

    def sense(self) -> None:
        waiting = self.__dict__.setdefault('waiting', [])
        waiting.append(State(self.t, self.q.copy(), self.qd.copy()))
        self.loop.feed(waiting.pop(0) if len(waiting) > 2 else waiting[0])


def test_a_robot_that_swings_fast_gets_gains_that_do_not_drive_it() -> None:
    """A finger that swings at 6 Hz, in a loop of 50 Hz: the default gains excite the swing, the reduced ones do not."""
    name = 'bending_actuator'
    usual, robot = ConfigurationGains(), robot_of(name)
    eased = usual.eased(robot, robot.description.actuation.valve_lag + 2.0 / 50.0)
    target = np.full(5, 0.03)
    largest = {}
    for gains in (usual, eased):
        rig = LateRig(perturbed(name), loop_of(name, gains), 50.0)
        rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [1.0], [target]))
        rates = rig.run(5.0, lambda rig, _: np.abs(rig.qd).max())
        largest[gains] = max(rates[-50:])
    assert largest[usual] > 0.5
    assert largest[eased] < 0.01


def test_gains_that_somebody_has_chosen_are_not_eased() -> None:
    """Only those: after a change of one gain, or of another parameter, the other gains are still reduced."""
    usual, robot, chosen = ConfigurationGains(), robot_of('bending_actuator'), (0.7,)
    eased = usual.eased(robot, 0.1)
    assert eased.proportional[0] < 0.2 * usual.proportional[0]
    for name in ('proportional', 'derivative', 'integral'):
        assert replace(usual, **{name: chosen}).eased(robot, 0.1) == replace(eased, **{name: chosen})
    assert replace(usual, lookahead=0.01).eased(robot, 0.1) == replace(eased, lookahead=0.01)


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm'])
def test_slow_arms_keep_their_gains(name: str) -> None:
    robot = robot_of(name)
    delay = robot.description.actuation.valve_lag + 2.0 / 100.0
    assert ConfigurationGains().eased(robot, delay) == ConfigurationGains()


def test_three_chambers_bend_while_they_stretch() -> None:
    def wanted(t: float) -> np.ndarray:
        return np.r_[np.zeros(6), 1e-3 * np.sin(t), -1e-3 * np.cos(t), 0.01]

    gains = ConfigurationGains((0.0,), (0.0,), (2.0,))  # swings at 12 Hz, too fast for more at 100 Hz
    rig = Rig(perturbed('floating_actuator'), loop_of('floating_actuator', gains), 100.0)
    assert tracking_rms(rig, wanted, 5.0) <= 2e-4


def test_one_chamber_bends_all_hinges() -> None:
    rig = Rig(perturbed('bending_actuator'), loop_of('bending_actuator'), 100.0)
    wanted = np.full(5, 0.06)
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [1.0], [wanted]))
    rig.run(4.0, lambda rig, memory: None)
    assert np.mean(rig.q) == pytest.approx(0.06, abs=0.003)


def test_lag_compensation_halves_the_error_of_a_fast_swing() -> None:
    def wanted(t: float) -> np.ndarray:
        return np.tile([0.0, 0.1 * np.sin(1.2 * np.pi * t)], 4)

    plain = tracking_rms(Rig(perturbed(HONEYCOMB), loop_of(HONEYCOMB), 100.0), wanted, 6.0)
    gains = ConfigurationGains(lookahead=0.05 / 2.5)
    compensated = loop_of(HONEYCOMB, gains, Actuate(lag_speedup=2.5))
    assert tracking_rms(Rig(perturbed(HONEYCOMB), compensated, 100.0), wanted, 6.0) < 0.5 * plain


def test_without_feedback_it_is_the_inverse_dynamics_of_the_reference() -> None:
    """With q = q_r and qd = qd_r, eq. 9 is the equation of motion itself."""
    robot = robot_of(HONEYCOMB)
    law, q = ConfigurationLaw(robot, ZERO), np.linspace(-0.3, 0.3, 8)
    path = JointPath(0.0, law.rest(State(0.0, q, 0 * q)), [1.0, 2.0], [0.5 * q, -q])
    now = path.sample(0.7)
    np.testing.assert_allclose(
        law.forces(0.7, 0.01, State(0.7, now.q, now.qd), path), robot.inverse_dynamics(*now), atol=1e-10
    )


def test_the_coriolis_matrix_multiplies_the_rate_of_the_reference() -> None:
    """C(q, qd) v = [c(q, qd + v) - c(q, qd) - c(q, v)]/2, the Christoffel matrix."""
    robot = robot_of(HONEYCOMB)
    law, q, qd = ConfigurationLaw(robot, ZERO), np.linspace(-0.3, 0.4, 8), np.linspace(2.0, -1.0, 8)
    path = JointPath(0.0, law.rest(State(0.0, q, 0 * q)), [1.0], [-q])
    now = path.sample(0.5)
    tau = law.forces(0.5, 0.0, State(0.5, q, qd), path)
    c = robot.coriolis
    swirl = 0.5 * (c(q, qd + now.qd) - c(q, qd) - c(q, now.qd))
    rest = robot.mass_matrix(q) @ now.qdd + robot.gravity(q) + robot.elastic(now.q) + robot.damping(q, now.qd)
    np.testing.assert_allclose(tau, rest + swirl, atol=1e-9)


def test_gains_are_per_joint_and_in_stiffnesses() -> None:
    robot = robot_of(HONEYCOMB)
    np.testing.assert_allclose(
        stiffness_scale(robot), [5.78, 7.36, 4.71, 5.98, 3.81, 4.21, 2.86, 2.99], rtol=1e-6
    )
    one = ConfigurationGains((0.0,) * 7 + (2.0,), (0.0,), (0.0,))
    q = np.zeros(8)
    with_gain, without = ConfigurationLaw(robot, one), ConfigurationLaw(robot, ZERO)
    path = JointPath(0.0, without.rest(State(0.0, q, q)), [1.0], [np.full(8, 0.1)])
    state = State(2.0, q, q)
    extra = with_gain.forces(2.0, 0.0, state, path) - without.forces(2.0, 0.0, state, path)
    np.testing.assert_allclose(extra, [0.0] * 7 + [2.0 * 2.99 * 0.1], atol=1e-9)


def test_the_integral_does_not_wind_up() -> None:
    """After 6 s of an unreachable reference, the way back takes no longer than the way there."""
    rig = Rig(perturbed(HONEYCOMB), loop_of(HONEYCOMB), 50.0)
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [1.0], [np.tile([2.0, 0.0], 4)]))
    rig.run(6.0, lambda rig, memory: None)
    assert rig.q[6] < 1.8
    rig.loop.follow(rig.t, JointPath(rig.t, rig.loop.present(rig.t), [1.0], [np.zeros(8)]))
    rig.run(3.0, lambda rig, memory: None)
    assert np.max(np.abs(rig.q)) < 0.1


def test_taking_over_makes_no_bump() -> None:
    """A loop that starts from another controller's pressures commands nearly the same pressures."""
    rig = Rig(perturbed(HONEYCOMB), loop_of(HONEYCOMB), 50.0)
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [1.0], [np.tile([0.2, 0.1], 4)]))
    held = rig.run(4.0, lambda rig, memory: memory.pressure)[-1]
    rig.loop = loop_of(HONEYCOMB)
    rig.loop.begin(rig.t, held)
    rig.sense()
    rig.loop.follow(rig.t, JointPath(rig.t, rig.loop.present(rig.t), [1.0], [rig.q]))
    seen = rig.run(0.5, lambda rig, memory: (memory.pressure, rig.qd))
    assert max(np.max(np.abs(p - held)) for p, _ in seen) < 5e3
    assert max(np.max(np.abs(qd)) for _, qd in seen) < 0.05


def test_refusals() -> None:
    with pytest.raises(ValueError, match='proportional must have 1 or 8 entries, got 2'):
        ConfigurationLaw(robot_of(HONEYCOMB), ConfigurationGains((1.0, 2.0)))
    with pytest.raises(ValueError, match='integral must be finite numbers >= 0'):
        ConfigurationGains(integral=(-1.0,))
    for name in ('windup_time', 'lookahead'):
        with pytest.raises(ValueError, match=f'{name} must be .* finite, got inf'):
            ConfigurationGains(**{name: np.inf})
    with pytest.raises(ValueError, match='lag_speedup must be 1 to 10'):
        Actuate(lag_speedup=0.5)
