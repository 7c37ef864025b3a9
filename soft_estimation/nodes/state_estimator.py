"""Node that publishes `state` from any mix of the robot's sensors."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numba
from soft_robot_suite.msg import SoftState

from soft_dynamics.diagnostics import ERROR, OK, STALE, WARN, RateCounter, Status, stream_status
from soft_dynamics.errors import SoftRobotError, one_line
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.lifecycle import ManagedNode
from soft_dynamics.ros.message_watchdog import MessageWatchdog
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import STATE
from soft_dynamics.timing.stamp_clock import StampClock
from soft_estimation.kalman.sensors import SENSORS
from soft_estimation.kalman.warm_up import warm_up
from soft_estimation.nodes.estimator_config import Config, Setup
from soft_estimation.nodes.load_outputs import LoadOutputs
from soft_estimation.nodes.sensor_subscriptions import SensorInputs
from soft_estimation.nodes.state_message import StateMessage
from soft_estimation.scheduler import Ready, Sample, Scheduler

JUMP_LIMIT_NS = 500_000_000  # [ns] a simulated clock that goes back further means a restarted bag
OLD = 0.25  # [s] warn if the newest sample is older
FAILURES = (ValueError, ArithmeticError, SoftRobotError)  # of a filter with wrong input


class StateEstimator(ManagedNode):
    """Feeds sensor samples to the filter and publishes the current state. Parameters apply at configure.

    It publishes when a sample of the leading sensor arrives (for tracked bodies: of all of them), at most `rate` times
    per second. After one and a half periods without a sample it publishes a prediction. A state between two samples of
    the same rate would only delay the next one.
    """

    config: Config

    def __init__(self) -> None:
        super().__init__('state_estimator')
        bind_config(self, Config)
        numba.set_num_threads(1)  # a second thread takes longer to wake up than a state to compute
        self._setup = Setup.of(self.config)
        self._estimator = self._setup.make_filter()  # so that errors show at start
        self._clock: Any = self.get_clock()
        self._stamps = StampClock(self._setup.robot.description.safety.state_timeout)
        self._publisher = self.create_publisher(SoftState, 'state', STATE)
        self._diagnostics = Diagnostics(self, self._setup.robot.name, {'state': self._status})
        self._inputs: SensorInputs | None = None  # None unless configured
        self._loads: LoadOutputs | None = None
        self._watchdog: MessageWatchdog | None = None  # None unless active

    # ---- lifecycle -----------------------------------------------------------------------------------------------

    def on_configure(self, state: Any) -> Any:
        if self._setup.config != self.config:
            self._setup = Setup.of(self.config)
        setup = self._setup
        self._diagnostics.hardware_id = setup.robot.name
        warm_up(setup.make_filter(), setup.robot, setup.sensors)
        shows = {kind for kind, sensor in SENSORS.items() if sensor.shows_shape}
        self._showing = shows if setup.sees else SENSORS.keys() - shows  # without them the state is a guess
        self._message = StateMessage(setup.robot)
        self._samples, self._states = RateCounter(), RateCounter()
        self._refused = self._failures = 0
        self._refusal, self._now_ns = '', 0
        config = setup.config
        self._scheduler = Scheduler(config.rate, config.sensor_rate, config.at_samples, tuple(SENSORS))
        self._inputs = SensorInputs(self, setup, self._scheduler, self._on_sample, self._refuse)
        self._loads = LoadOutputs(self, setup.robot) if setup.weighs else None
        self._start_over()
        return super().on_configure(state)

    def on_activate(self, state: Any) -> Any:
        timeout = self._setup.robot.description.safety.state_timeout
        self._watchdog = MessageWatchdog(self, self._scheduler.period, timeout, self._on_silence)
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        if self._watchdog is not None:
            self._watchdog.close()
            self._watchdog = None
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> Any:
        for each in (self._inputs, self._loads):
            if each is not None:
                each.close()
        self._inputs = self._loads = None
        return super().on_cleanup(state)

    def _start_over(self) -> None:
        """Discard all samples. Times of the filter count from the next one."""
        self._estimator = self._setup.make_filter()
        self._scheduler.start_over()
        self._sources: set[str] = set()
        self._tallied = 0, 0, self._refused
        for each in (self._inputs, self._loads):
            if each is not None:
                each.start_over()

    # ---- samples -------------------------------------------------------------------------------------------------

    def _on_sample(self, sample: Sample) -> None:
        """Take a sample: at once, or with `at_samples` in order of stamps."""
        now_ns = self._clock_ns()
        try:
            in_turn = self._scheduler.add(sample, now_ns)
        except ValueError as error:
            self._refuse(sample.name, error)
            return
        for ready in in_turn:
            self._take(ready)

    def _take(self, ready: Ready) -> None:
        """Feed a sample, and publish the state if one is due."""
        (sample, _, now), inputs = ready, self._inputs
        if inputs is None:
            return
        try:
            is_fed = inputs.feed(self._estimator, ready)
        except (ValueError, ArithmeticError) as error:
            self._refuse(sample.name, error)
            return
        self._sources.add(sample.kind)
        if sample.kind not in self._showing:
            with suppress(*FAILURES):  # the next state reports the error
                self._estimator.catch_up()  # so that the next frame need not wait for it
            return
        self._samples.tick(self._now_ns * 1e-9)
        leads = self._scheduler.leads(sample.kind, now)
        inputs.follow(self._scheduler.leading)
        if is_fed and leads and self._watchdog is not None and self._scheduler.is_due(now):
            self._watchdog.heard()
            self._publish(now)

    def _refuse(self, name: str, error: ValueError | ArithmeticError) -> None:
        self._refused += 1
        self._refusal = one_line(f'{name}: {error}', 200)
        self.get_logger().warning(f'sample refused: {self._refusal}', throttle_duration_sec=5.0)

    # ---- state ---------------------------------------------------------------------------------------------------

    def _on_silence(self) -> None:
        if self._setup.config.at_samples or self._inputs is None:
            return
        now_ns = self._clock_ns()
        if self._scheduler.is_overdue(now_ns):
            self._inputs.flush(self._estimator)
            self._publish(self._scheduler.seconds(now_ns))

    def _publish(self, t: float) -> None:
        """Publish the state at time t since the start, unless the shape was not seen for too long."""
        self._scheduler.asked = t
        try:
            if not self._estimator.located or t - self._seen_at() > self._setup.config.blackout_limit:
                return
            if not self._estimator.is_explained:
                return
            estimate = self._estimator.estimate(t)
            stamp_ns = self._scheduler.nanoseconds(estimate.t)
            self._publisher.publish(self._message.write(estimate, stamp_ns, self._sources))
            if self._loads is not None and self._inputs is not None:
                self._loads.feed(estimate, stamp_ns, self._inputs.pressure, self._inputs.wrench_B)
            self._estimator.bodies.look()
        except FAILURES as error:
            self._failures += 1
            self.get_logger().warning(f'lost the state, restarting: {error}', throttle_duration_sec=5.0)
            self._start_over()
            return
        self._sources.clear()
        self._states.tick(self._now_ns * 1e-9)

    def _seen_at(self) -> float:
        """Return when the last accepted sample that shows the shape was measured."""
        return float(self._estimator.shown_at if self._setup.sees else self._estimator.accepted_at)

    def _clock_ns(self) -> int:
        now_ns = int(self._clock.now().nanoseconds)
        was_set = self._stamps.look()
        if self._clock.ros_time_is_active or self._setup.config.at_samples:
            was_set = now_ns < self._now_ns - JUMP_LIMIT_NS
        if was_set:
            self.get_logger().warning('the clock was set: starting over')
            self._start_over()
        self._now_ns = now_ns
        return now_ns

    # ---- diagnostics ---------------------------------------------------------------------------------------------

    def _status(self) -> Status:
        if self._inputs is None:
            return Status(STALE, 'not configured')
        now_ns = int(self._clock.now().nanoseconds)
        now = now_ns * 1e-9
        verdict = stream_status(
            self._samples.rate(now), self._samples.age(now), 0.0, self._setup.config.blackout_limit
        )
        values = {
            **verdict.values,
            'state rate [Hz]': f'{self._states.rate(now):.1f}',
            'leading': self._scheduler.leading,
            'refused': self._refused,
            'last refusal': self._refusal,
            'failures': self._failures,
        }
        try:
            if verdict.level == OK or self._refused > self._tallied[2]:
                verdict = self._doubts(now_ns) or verdict
            values |= self._estimator.report()
        except FAILURES as error:  # the next state meets the same error and restarts
            verdict = Status(ERROR, f'lost the state: {error}')
        if self._loads is not None:
            values |= self._loads.report()
        return verdict._replace(values=values)

    def _doubts(self, now_ns: int) -> Status | None:
        """Return a status if samples arrive but are not usable."""
        let_in, left_out = self._estimator.tally
        before, self._tallied = self._tallied, (let_in, left_out, self._refused)
        let_in, left_out = let_in - before[0], left_out - before[1] + self._refused - before[2]
        is_live = not self._setup.config.at_samples and self._scheduler.start_ns is not None
        now = self._scheduler.seconds(now_ns) if is_live else self._scheduler.asked
        age = now - self._seen_at()
        what = f'{left_out} of {let_in + left_out} samples were late or refused'
        if left_out > let_in or age > self._setup.config.blackout_limit:
            last = f', none accepted for {age:.1f} s' if math.isfinite(age) else ''
            return Status(ERROR, f'{what}{last}{": " if self._refusal else ""}{self._refusal}')
        if not self._estimator.is_explained:
            return Status(ERROR, 'no state: noise and misfit do not explain the innovations')
        if age > OLD:
            return Status(WARN, f'the newest accepted sample is {age:.2f} s old')
        misplaced = '; '.join(self._estimator.bodies.lines())
        return Status(WARN, misplaced) if misplaced else None


def main(args: list[str] | None = None) -> int:
    return run_node(StateEstimator, args)
