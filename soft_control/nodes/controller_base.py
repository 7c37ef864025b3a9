"""Base class of the controller nodes: states in, safe commands out."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_srvs.srv import Trigger

from soft_control.control_loop import Actuate, ControlLoop, Law
from soft_control.laws.predictive import PredictiveGains
from soft_control.safety.state_machine import Memory, Mode, State
from soft_dynamics.array import Array
from soft_dynamics.diagnostics import ERROR, OK, STALE, WARN, Status
from soft_dynamics.errors import one_line
from soft_dynamics.messages.flat_messages import Flat
from soft_dynamics.pressure_limits import LONGEST_STEP
from soft_dynamics.robot import Robot, load
from soft_dynamics.ros.conversions import flat_reader, flat_writer, float64s
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.executor import in_passing
from soft_dynamics.ros.lifecycle import ManagedNode
from soft_dynamics.ros.message_guard import Refusals, read_message, subscribe
from soft_dynamics.ros.message_watchdog import MessageWatchdog
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import COMMAND
from soft_dynamics.timing.boot_time import boot_time
from soft_dynamics.timing.rate_limiter import Pace
from soft_dynamics.timing.stamp_clock import StampClock

LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)  # the next message replaces it
_SENSIBLE = 2.0  # times the largest pressure: a command beyond is an error
_CYCLES_PER_TIMEOUT = 2.0  # with fewer the pressure bridge would vent
_DECLARE_TIME = 0.1  # [s] after activation, because DDS may drop a single message
_TELL_PERIOD = 1.0  # [s] shortest interval between two log lines about the same mode
_LEVELS = {Mode.FOLLOWING: OK, Mode.IDLE: WARN, Mode.VENTING: WARN, Mode.STOPPED: ERROR}


@dataclass(frozen=True)
class ControllerConfig:
    """Parameters of every controller."""

    robot: str = field(
        default='honeycomb_arm',
        metadata={'doc': 'name of a shipped robot, or path of a robot file', 'read_only': True},
    )
    rate: float = field(
        default=200.0, metadata={'doc': 'maximum rate of the control loop', 'unit': 'Hz', 'read_only': True}
    )
    predictive: PredictiveGains = PredictiveGains()
    actuate: Actuate = Actuate()

    def __post_init__(self) -> None:
        if not 1.0 / LONGEST_STEP <= self.rate <= 2000.0:
            raise ValueError(f'rate must be {1.0 / LONGEST_STEP:g} to 2000, got {self.rate}')


class ControllerNode(ManagedNode):
    """Runs a control loop: a cycle with every state, at most `rate` per second, and a timer if states stop.

    It inflates nothing before activation. If another controller is commanding at activation, it continues from those
    commands and holds the pose; otherwise it starts vented. After deactivation it publishes nothing, and the pressure
    bridge vents unless another controller takes over. Law and actuation parameters apply at the next configure; speeds
    and time-outs of references at the next reference. It runs in real time and rejects use_sim_time.
    """

    refuses_simulated_time = True

    def __init__(self, node_name: str, config_class: type[Any]) -> None:
        super().__init__(node_name)
        bind_config(self, config_class, self._on_change)
        numba.set_num_threads(1)  # a second thread takes longer to wake up than a state to compute
        self.robot: Robot = load(self.config.robot)
        _check_rate(self.robot, self.config.rate)
        self.loop = self._make_loop()
        self.refused = 0  # references
        self.refusals = Refusals(self)  # other messages
        self._stopped = False  # emergency stop, until deactivated
        self._commanded: tuple[float, Array] | None = (
            None  # last command of another controller: time [s], pressures [Pa]
        )
        self._told = (Mode.IDLE, '')
        self._told_t: dict[Mode, float] = {}
        self.stamps = StampClock(self.loop.limits.state_timeout)
        self._declared_t = -math.inf  # [s] until then its commands declare a handover
        self._awake_t, self._yielded = boot_time(), False
        self._pace = Pace(self.config.rate)
        names = list(self.robot.chamber_names)
        command = ChamberPressures(names=names, pressure=float64s(np.zeros(len(names))))
        command.source = self.get_fully_qualified_name()
        self._write_command = flat_writer(command)
        command.handover = True
        self._write_handover = flat_writer(command)
        self._read_state, self._read_measured = flat_reader(SoftState), flat_reader(ChamberPressures)
        self._publisher = self.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self._others: Subscription | None = None
        self._hear_others()
        self.create_subscription(SoftState, 'state', self._on_state, LATEST, raw=True)
        in_passing(
            self.create_subscription(
                ChamberPressures, 'pressure/measured', self._on_measured, LATEST, raw=True
            ),
            has_time=True,
        )
        self.create_service(Trigger, '~/emergency_stop', self._on_emergency_stop)
        self.diagnostics = Diagnostics(self, self.robot.name, {'control': self._status})
        safety = self.robot.description.safety
        self._measured_lasts = safety.command_timeout  # [s]
        timeout = min(safety.state_timeout, safety.command_timeout)
        self._watchdog = MessageWatchdog(self, 1.5 / self.config.rate, timeout, self._on_silence)

    @abstractmethod
    def make_law(self, config: Any) -> Law:
        """Return the control law for these parameters; ValueError if they do not fit the robot."""

    @abstractmethod
    def hold(self, t: float) -> Any:
        """Return a reference that holds the present pose; ValueError if the state is unknown."""

    def hear_references(self, kind: type[Any], topic: str, follow: Callable[[float, Any], None]) -> None:
        """Call follow(time [s], message) for each message of a topic. On ValueError the previous reference stays."""

        def on_reference(data: bytes) -> None:
            t = boot_time()
            try:
                follow(t, read_message(data, kind))
            except (ValueError, ArithmeticError) as error:
                self.refused += 1
                text = one_line(str(error), 200)
                self.get_logger().warning(f'reference refused: {text}', throttle_duration_sec=1.0)

        self.create_subscription(kind, topic, on_reference, COMMAND, raw=True)

    def present(self, t: float) -> Any:
        """Return the sample at which a new reference starts; ValueError if the controller cannot follow one now."""
        if not self.active:
            raise ValueError('not ready: not active')
        return self.loop.present(t)

    def on_configure(self, state: Any) -> Any:
        self.loop = self._make_loop()
        if self._cycle_s * self.config.rate > 1.0:
            took, most = f'{1e3 * self._cycle_s:.0f} ms', f'{0.7 / self._cycle_s:.0f} Hz'
            self.get_logger().warning(
                f'a cycle takes {took}, too long for {self.config.rate:g} Hz; set rate to {most} or less'
            )
        self.get_logger().info(f'ready for {self.robot.name}')  # the first log line of rclpy takes 0.1 s
        return super().on_configure(state)

    def on_activate(self, state: Any) -> Any:
        t, last, estimate = boot_time(), self._commanded, self.loop.state
        taken_over = last is not None and t - last[0] <= self.robot.description.safety.command_timeout
        self.loop.begin(t, last[1] if last is not None and taken_over else None)
        if estimate is not None:
            self.loop.feed(estimate)
        if self._stopped:
            self.loop.stop()
        if taken_over:
            try:
                self.loop.follow(t, self.hold(t))
            except ValueError as error:
                self.get_logger().warning(f'cannot hold the pose: {error}')
        if self._others is not None:  # its own commands would take longer to receive than to publish
            self.destroy_subscription(self._others)
            self._others = None
        self._declared_t = t + _DECLARE_TIME
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        if self._others is None and self.loop.memory.mode is not Mode.STOPPED:  # the last command hands over
            last = self._write_handover.write(time.time_ns(), self.loop.memory.pressure)
            self._publisher.publish(last)
        self._stopped = False
        self._hear_others()
        return super().on_deactivate(state)

    def _on_change(self, config: Any) -> None:
        """Reject parameters that make no valid law."""
        self.make_law(config)
        self.get_logger().info('law, gains and actuation change at the next configure')

    def _make_loop(self) -> ControlLoop:
        """Return a loop that has run a few cycles, so that everything is compiled."""
        loop = ControlLoop(self.robot, self.make_law(self.config), self.config.actuate)
        loop.feed(State(0.0, self.robot.rest, np.zeros(self.robot.nq)))
        self.loop = loop
        loop.follow(0.0, self.hold(0.0))
        took = []
        for t in (0.0, 0.01, 0.02, 0.03):
            start = time.thread_time()
            loop.feed(State(t, self.robot.rest, np.zeros(self.robot.nq)))
            loop.step(t)
            loop.feed_pressure(t, loop.memory.pressure)
            took.append(time.thread_time() - start)
        self._cycle_s = min(took)  # [s] of CPU, without the cycles that compile
        loop.begin(0.0)
        return loop

    def look(self) -> float:
        """Return the time [s], and check whether the wall clock was set."""
        if self.stamps.look():
            by = f'{self.stamps.set_by:+.3f} s'
            self.get_logger().warning(
                f'the wall clock was set by {by}; venting, because stamps cannot be trusted'
            )
        return self.stamps.t

    def _on_state(self, data: bytes) -> None:
        t = self.look()
        try:
            stamp_ns, (_, _, names, _), (q, qd, *_) = self._read_state.read(data)
            if names != self.robot.coordinate_names or not q.size == qd.size == self.robot.nq:
                raise ValueError(f'the coordinates do not belong to {self.robot.name}')
        except ValueError as error:
            self.refusals.add('state', error)
            return
        self.loop.feed(State(self.stamps.time_of(stamp_ns), q, qd))
        self._awake_t = t
        self._watchdog.heard()
        if self._pace.take(t):
            self._cycle(t)

    def _on_measured(self, data: bytes) -> None:
        try:
            stamp_ns, (_, names, *_), (pressure,) = self._read_measured.read(data)
            t = boot_time()
            is_old = stamp_ns and t - self.stamps.time_of(stamp_ns) > self._measured_lasts
            if names == self.robot.chamber_names and pressure.size == len(names) and not is_old:
                self.loop.feed_pressure(t, pressure)
        except ValueError as error:
            self.refusals.add('pressure/measured', error)

    def _on_silence(self) -> None:
        t = self.look()
        held_up = t - self._awake_t > 0.5 * self.loop.limits.state_timeout
        self._awake_t = t
        if held_up and not self._yielded:  # a newer state may be queued: judge at the next call
            self._yielded = True
            return
        self._yielded = False
        self._cycle(t)

    def _cycle(self, t: float) -> None:
        """Run one cycle at t, the time of the last `look`, and publish its command."""
        if not self.active:
            return
        memory = self.loop.step(t)
        writer = self._write_command if t > self._declared_t else self._write_handover
        self._publisher.publish(writer.write(self.stamps.now_ns, memory.pressure))
        if (memory.mode, memory.reason) != self._told:
            self._tell(t, memory)

    def _tell(self, t: float, memory: Memory) -> None:
        """Log a new mode or reason and publish diagnostics, at most once per period and mode."""
        if t - self._told_t.get(memory.mode, -math.inf) < _TELL_PERIOD:
            return
        self._told, self._told_t[memory.mode] = (memory.mode, memory.reason), t
        line = ': '.join(filter(None, (memory.mode.value, memory.reason)))
        if memory.mode is Mode.STOPPED:  # rclpy allows one severity per line of code
            self.get_logger().error(line)
        elif memory.mode is Mode.VENTING:
            self.get_logger().warning(line)
        else:
            self.get_logger().info(line)
        self.diagnostics.publish()

    def _hear_others(self) -> None:
        """Subscribe to commands of other controllers while this node is inactive."""
        if self._others is None:
            topic, refuse = 'pressure/command', self.refusals.add
            self._others = subscribe(self, ChamberPressures, topic, self._on_command, COMMAND, refuse)

    def _on_command(self, message: Flat) -> None:
        """Remember the command of another controller; ValueError if it is invalid."""
        (_, names, *_), (pressure,) = message.texts, message.arrays
        if names != self.robot.chamber_names or pressure.size != len(names):
            raise ValueError(f'the chambers do not belong to {self.robot.name}')
        limits = self.loop.limits
        most = _SENSIBLE * max(limits.pressure_max, -limits.pressure_min)
        if not np.all(np.abs(pressure) <= most):
            raise ValueError(f'pressure is more than {_SENSIBLE:g} times the limit')
        self._commanded = boot_time(), np.clip(pressure, limits.pressure_min, limits.pressure_max)

    def _on_emergency_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """Stop now if active; otherwise latch, so that the node follows nothing once activated."""
        self._stopped = True
        self.loop.stop()
        response.success = True
        what = 'venting' if self.active else 'not active; stopped for the next activation'
        response.message = f'{what}; deactivate and activate to resume'
        self.get_logger().error('emergency stop')
        return response

    def _status(self) -> Status:
        if not self.active:
            return Status(STALE, 'not active', self.refusals.report())
        memory = self.loop.memory
        values = {
            'mode': memory.mode.value,
            'highest_pressure_pa': f'{np.max(memory.pressure):.0f}',
            'references_refused': self.refused,
            **self.refusals.report(),
        }
        return Status(_LEVELS[memory.mode], memory.reason or 'following', values)


def _check_rate(robot: Robot, rate: float) -> None:
    least_rate = _CYCLES_PER_TIMEOUT / robot.description.safety.command_timeout
    if rate < least_rate:
        raise ValueError(f'rate must be at least {least_rate:g} Hz for {robot.name}, got {rate:g}')
