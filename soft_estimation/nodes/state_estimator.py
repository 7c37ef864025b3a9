"""The state of the robot, at a fixed rate, from any mix of its sensors: `state`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from geometry_msgs.msg import InertiaStamped, PoseStamped, WrenchStamped
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from soft_robot_suite.msg import BodyPoses, ChamberPressures, ShapeSamples, SoftState

from soft_dynamics.arguments import Array
from soft_dynamics.counters import OK, STALE, WARN, RateCounter, Status, stream_status
from soft_dynamics.description import Sensor
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot, load
from soft_dynamics.ros.conversions import float64s, pose_to_arrays, time_from_ns, time_to_ns, wrench_to_array
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.executor import in_passing
from soft_dynamics.ros.lifecycle import ManagedNode
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.ros.run import run_node
from soft_estimation.configuration import frame_index
from soft_estimation.differentiator import DifferentiatorConfig
from soft_estimation.in_order import InOrder
from soft_estimation.loads import TipLoad, TipLoadOfStates
from soft_estimation.model_filter import FilterConfig, ModelFilter
from soft_estimation.pose_differentiator import PoseDifferentiator
from soft_estimation.pose_sets import PoseCollector, Poses
from soft_estimation.poses import pose, pose_from_rpy
from soft_estimation.sensing import wrench_at_base

METHODS = ('model', 'differentiator')
POSE_KINDS = ('mocap', 'vive')
LEADERS = (*POSE_KINDS, 'fiber', 'ft')  # the first of them that is heard makes a state due
LEAD_NS = 100_000_000  # a leader that has been silent for longer is none
FUTURE_LIMIT = 0.1  # [s] a stamp further ahead of the clock is wrong
NEWEST = QoSProfile(depth=1, reliability=SENSOR.reliability)
EVERY = QoSProfile(depth=1000, reliability=SENSOR.reliability)  # with at_samples no sample is to be lost
HOLD_NS = (
    50_000_000  # with at_samples: how much later than the newest a sample may arrive and still be in order
)
JUMP_LIMIT = 0.5  # [s] a clock that goes back further has been set anew: a bag that starts over


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    robot: str = quantity('honeycomb_arm', doc='shipped robot or file of one')
    method: str = quantity('model', doc='model or differentiator (poses only, no dynamics)')
    sensors: tuple[str, ...] = quantity(
        (), doc='sensors of the robot file to use; none: all that the method takes'
    )
    rate: float = quantity(
        200.0, unit='Hz', doc='of the state, two thirds of it at least; see the docs for when it is published'
    )
    sensor_rate: float = quantity(
        125.0,
        unit='Hz',
        doc='samples of each sensor beyond this, or beyond rate if that is more, are left out',
    )
    blackout_limit: float = quantity(
        2.0, unit='s', doc='without a sample that shows the shape no state is published'
    )
    at_samples: bool = quantity(
        False,
        doc='samples in the order of their stamps, 50 ms late, and states at their times: a played bag gives the same',
    )
    filter: FilterConfig = FilterConfig()
    differentiator: DifferentiatorConfig = DifferentiatorConfig()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f'method must be one of {", ".join(METHODS)}, got {self.method!r}')
        for name in ('rate', 'sensor_rate', 'blackout_limit'):
            if not getattr(self, name) > 0.0:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')


class StateEstimator(ManagedNode):
    """Feeds the sensors to the filter as they come and asks it for the state of now. Parameters apply at configure.

    The state is published as soon as a set of poses is complete (without tracked bodies: the fiber's shape, or else the
    wrench), but not sooner than half a period after the last state; and whenever one and a half have passed without:
    a state between two samples that come at the same rate would only hold up the next one.
    """

    config: Config

    def __init__(self) -> None:
        super().__init__('state_estimator')
        bind_config(self, Config)
        self._publisher = self.create_publisher(SoftState, 'state', STATE)
        self._load_publisher = self.create_publisher(InertiaStamped, 'tip_load', STATE)
        self._diagnostics = Diagnostics(self, 'not configured', {'state': self._status})
        self._inputs: dict[Subscription, str] = {}  # and the kinds of their sensors
        self._single_bodies: dict[str, list[Subscription]] = {}  # of the inputs, by kind
        self._timer: Timer | None = None
        self._configured = False

    # ---- lifecycle -----------------------------------------------------------------------------------------------

    def on_configure(self, state: Any) -> Any:
        numba.set_num_threads(1)  # a single state is done sooner than a second thread wakes up
        self._robot = load(self.config.robot)
        sensors = self._chosen(self._robot)
        self._diagnostics.hardware_id = self._robot.name
        kinds: dict[str, set[str]] = {}
        for sensor in sensors:
            kinds.setdefault(sensor.kind, set()).add(sensor.name)
        self._bodies = {kind: kinds[kind] for kind in POSE_KINDS if kind in kinds}
        self._showing = kinds.keys() & {*POSE_KINDS, 'fiber'} or {'ft'}  # without them the state is a guess
        self._weighs = self.config.method == 'model' and 'ft' in kinds and kinds.keys() != {'ft'}
        self._make_estimator()
        _warm_up(self._make_filter(), self._robot, sensors)
        self._subscribe(sensors)
        self._configured = True
        return super().on_configure(state)

    def on_activate(self, state: Any) -> Any:
        self._timer = self.create_timer(1.5 / self.config.rate, self._on_timer)
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> Any:
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs, self._configured = {}, False
        return super().on_cleanup(state)

    def _chosen(self, robot: Robot) -> list[Sensor]:
        known = {sensor.name: sensor for sensor in robot.description.sensors}
        for name in self.config.sensors:
            if name not in known:
                raise ValueError(f'sensors: {robot.name} has {", ".join(known) or "none"}, got {name!r}')
        chosen = [known[name] for name in self.config.sensors or known]
        if self.config.method == 'differentiator':
            others = [s.name for s in chosen if s.kind not in POSE_KINDS]
            if self.config.sensors and others:
                raise ValueError(f'sensors: the differentiator takes tracked bodies only, got {others[0]!r}')
            chosen = [s for s in chosen if s.name not in others]
        if not chosen:
            raise ValueError(f'sensors: {robot.name} has none for the method {self.config.method}')
        return chosen

    def _make_filter(self) -> Any:
        if self.config.method == 'model':
            return ModelFilter(self._robot, self.config.filter)
        bodies = set().union(*self._bodies.values())
        return PoseDifferentiator(self._robot, self.config.differentiator, sensors=bodies)

    def _make_estimator(self) -> None:
        self._estimator = self._make_filter()
        self._collectors = {kind: PoseCollector(names) for kind, names in self._bodies.items()}
        self._in_order = InOrder(HOLD_NS)
        self._published_ns = 0
        self._load = TipLoadOfStates(TipLoad(self._robot)) if self._weighs else None
        self._wrench_B: Array | None = None
        self._pressure: list[float] = []
        self._start_ns: int | None = None
        self._last_fed: dict[str, float] = {}
        self._heard_ns: dict[str, int] = {}
        self._leading = ''
        self._sources: set[str] = set()
        self._samples, self._states = RateCounter(), RateCounter()
        self._refused, self._refusal, self._now_ns = 0, '', 0

    # ---- sensors -------------------------------------------------------------------------------------------------

    def _subscribe(self, sensors: list[Sensor]) -> None:
        def add(kind: str, message: type[Any], topic: str, callback: Callable[[Any], None]) -> Subscription:
            keeps = EVERY if self.config.at_samples else SENSOR if kind == 'pressure' else NEWEST
            subscription = self.create_subscription(message, topic, callback, keeps)
            self._inputs[subscription] = kind
            return subscription

        self._single_bodies = {kind: [] for kind in self._bodies}
        for kind in self._bodies:
            add(kind, BodyPoses, f'{kind}/frame', partial(self._on_frame, kind))
        for sensor in sensors:
            if sensor.kind in POSE_KINDS:
                topic, callback = f'{sensor.kind}/{sensor.name}/pose', partial(self._on_pose, sensor)
                self._single_bodies[sensor.kind].append(add(sensor.kind, PoseStamped, topic, callback))
            elif sensor.kind == 'fiber':
                add('fiber', ShapeSamples, 'fiber/shape', partial(self._on_shape, sensor))
            else:
                add('ft', WrenchStamped, 'ft/wrench', partial(self._on_wrench, sensor))
        if self.config.method == 'model':
            add('pressure', ChamberPressures, 'pressure/measured', self._on_pressure)

    def _on_frame(self, kind: str, msg: BodyPoses) -> None:
        for subscription in self._single_bodies.pop(kind, ()):  # frames have it all, at a fifth of the cost
            del self._inputs[subscription]
            self.destroy_subscription(subscription)

        def feed(t: float) -> bool:
            count = len(msg.names)
            p_WS, quat_WS = np.array(msg.positions), np.array(msg.orientations)
            if p_WS.size != 3 * count or quat_WS.size != 4 * count:
                raise ValueError(f'expected {count} poses, got {p_WS.size} and {quat_WS.size} numbers')
            X_WS = {}
            for name, p, quat in zip(msg.names, p_WS.reshape(-1, 3), quat_WS.reshape(-1, 4), strict=True):
                if name in self._bodies[kind]:
                    try:
                        X_WS[name] = pose(quat, p)
                    except ValueError as error:  # the other bodies are good
                        self._refuse(name, error)
            return bool(X_WS) and self._feed_sets([Poses(t, X_WS)])

        self._feed(kind, kind, msg, feed)

    def _on_pose(self, sensor: Sensor, msg: PoseStamped) -> None:
        def feed(t: float) -> bool:
            X_WS = pose(*pose_to_arrays(msg.pose))
            return self._feed_sets(self._collectors[sensor.kind].add(t, sensor.name, X_WS))

        self._feed(sensor.name, sensor.kind, msg, feed)

    def _feed_sets(self, sets: list[Poses]) -> bool:
        """Whether there were any."""
        for t, X_WS in sets:
            self._estimator.feed_poses(t, X_WS)
        return bool(sets)

    def _on_shape(self, sensor: Sensor, msg: ShapeSamples) -> None:
        def feed(t: float) -> bool:
            points = np.array(msg.points)
            if points.size != 3 * len(msg.arc_length):
                raise ValueError(f'expected {len(msg.arc_length)} points, got {points.size} numbers')
            self._estimator.feed_shape(t, sensor.name, msg.arc_length, points.reshape(-1, 3))
            return True

        self._feed(sensor.name, 'fiber', msg, feed)

    def _on_wrench(self, sensor: Sensor, msg: WrenchStamped) -> None:
        def feed(t: float) -> bool:
            if 'ft' not in self._showing and not self._estimator.located:
                return False  # it cannot tell from which pose to begin
            wrench_S = wrench_to_array(msg.wrench)
            self._estimator.feed_wrench(t, sensor.name, wrench_S)
            self._wrench_B = wrench_at_base(sensor, wrench_S)
            return True

        self._feed(sensor.name, 'ft', msg, feed)

    def _on_pressure(self, msg: ChamberPressures) -> None:
        def feed(t: float) -> bool:
            measured = dict(zip(msg.names, msg.pressure, strict=False))
            missing = [name for name in self._robot.chamber_names if name not in measured]
            if missing:
                raise ValueError(f'expected chamber {missing[0]!r}, got {", ".join(msg.names)}')
            self._pressure = [measured[name] for name in self._robot.chamber_names]
            self._estimator.feed_pressure(t, self._pressure)
            return True

        self._feed('pressure', 'pressure', msg, feed)

    def _feed(self, name: str, kind: str, msg: Any, feed: Callable[[float], bool]) -> None:
        """Let a sample in: at once, or with `at_samples` in the order of stamps. feed tells if there is news."""
        now_ns, stamp_ns = self._clock_ns(), time_to_ns(msg.header.stamp)
        if not self.config.at_samples:
            self._start_ns = now_ns if self._start_ns is None else self._start_ns
            self._take(name, kind, (stamp_ns - self._start_ns) * 1e-9, feed)
            return
        for ready_ns, source, _, (what, tell) in self._in_order.add(stamp_ns, name, (kind, feed)):
            self._start_ns = ready_ns if self._start_ns is None else self._start_ns
            self._take(source, what, (ready_ns - self._start_ns) * 1e-9, tell)

    def _take(self, name: str, kind: str, t: float, feed: Callable[[float], bool]) -> None:
        """A sample at time t, unless it comes too soon after the last one of its sensor or makes no sense."""
        now_ns = self._now_ns
        now = (now_ns - (self._start_ns or 0)) * 1e-9
        if abs(t - self._last_fed.get(name, -np.inf)) < 0.9 / max(self.config.sensor_rate, self.config.rate):
            return
        try:
            if t > now + FUTURE_LIMIT and not self.config.at_samples:
                raise ValueError(f'stamp is {t - now:.3f} s ahead of the clock')
            is_news = feed(t)
        except ValueError as error:
            self._refuse(name, error)
            return
        self._last_fed[name] = t
        self._sources.add(kind)
        if kind in self._showing:
            self._samples.tick(now_ns * 1e-9)
            self._heard_ns[kind] = now_ns
            self._choose_leader()
        at_samples = self.config.at_samples
        waited = at_samples or now_ns - self._published_ns > 0.5e9 / self.config.rate
        if is_news and kind == self._leading and waited and self._timer is not None:
            self._timer.reset()  # the next period begins with this state
            self._publish(t if at_samples else None)

    def _choose_leader(self) -> None:
        """Be woken by the best sensor that is heard only: then the newest samples of the others are there too."""
        heard = (kind for kind in LEADERS if self._now_ns - self._heard_ns.get(kind, 0) < LEAD_NS)
        leading = next(heard, '')
        if leading != self._leading:
            self._leading = leading
            for subscription, kind in self._inputs.items():
                in_passing(subscription, kind != leading and not self.config.at_samples)
            if self.executor is not None:
                self.executor.wake()

    def _refuse(self, name: str, error: ValueError) -> None:
        self._refused += 1
        self._refusal = f'{name}: {error}'
        self.get_logger().warning(f'sample refused: {self._refusal}', throttle_duration_sec=5.0)

    # ---- state ---------------------------------------------------------------------------------------------------

    def _on_timer(self) -> None:
        if self.config.at_samples:
            return
        for collector in self._collectors.values():
            self._feed_sets(collector.flush())
        self._publish()

    def _publish(self, t: float | None = None) -> None:
        """The state at time t since the start, or now."""
        now_ns = self._clock_ns()
        silent = self._samples.age(now_ns * 1e-9) > self.config.blackout_limit
        if not self._estimator.located or self._start_ns is None or silent:
            return
        estimate = self._estimator.estimate((now_ns - self._start_ns) * 1e-9 if t is None else t)
        message = SoftState(
            model=self._robot.name,
            names=list(self._robot.coordinate_names),
            q=float64s(estimate.q),
            qd=float64s(estimate.qd),
            qdd=float64s(estimate.qdd),
            covariance_diagonal=float64s(estimate.variance),
            sources=sorted(self._sources),
        )
        message.header.stamp = time_from_ns(self._start_ns + round(estimate.t * 1e9))
        message.header.frame_id = 'base_link'
        self._sources.clear()
        self._published_ns = now_ns
        self._states.tick(now_ns * 1e-9)
        self._publisher.publish(message)
        self._weigh(estimate, message.header)

    def _weigh(self, estimate: Any, header: Any) -> None:
        """Publish the load whenever there is a new estimate of it."""
        if self._load is None or self._wrench_B is None or not self._pressure:
            return
        if self._load.feed(estimate.t, estimate.q, estimate.qd, self._pressure, self._wrench_B):
            message = InertiaStamped(header=header)
            message.header.frame_id = self._robot.frame_names[-1]
            message.inertia.m = self._load.mass
            self._load_publisher.publish(message)

    def _clock_ns(self) -> int:
        now_ns = int(self.get_clock().now().nanoseconds)
        if now_ns < self._now_ns - JUMP_LIMIT * 1e9:
            self.get_logger().warning('the clock was set back: starting anew')
            self._make_estimator()
        self._now_ns = now_ns
        return now_ns

    def _status(self) -> Status:
        if not self._configured:
            return Status(STALE, 'not configured')
        now = self.get_clock().now().nanoseconds * 1e-9
        age = self._samples.age(now)
        verdict = stream_status(self._samples.rate(now), age, 0.0, self.config.blackout_limit)
        if verdict.level == OK and self._refused > self._samples.total:
            verdict = verdict._replace(level=WARN, message=f'most samples are refused: {self._refusal}')
        values = {
            **verdict.values,
            'state rate [Hz]': f'{self._states.rate(now):.1f}',
            'refused': self._refused,
            'last refusal': self._refusal,
            **self._estimator.report(),
        }
        if self._load is not None:
            values['tip load [kg]'] = f'{self._load.mass:.3f} ± {self._load.standard_deviation:.3f}'
        return verdict._replace(values=values)


def _warm_up(estimator: Any, robot: Robot, sensors: list[Sensor]) -> None:
    """Compile what the sensors need, so that the first samples do not wait for it: show it the robot at rest."""
    mount, X_MF = robot.description.mount, robot.forward_kinematics(robot.rest)
    X_WM = pose_from_rpy(mount.position, mount.rpy)
    poses = {
        sensor.name: X_WM @ X_MF[frame_index(robot, sensor)] @ pose_from_rpy(sensor.position, sensor.rpy)
        for sensor in sensors
        if sensor.kind in POSE_KINDS
    }
    for t in (0.0, 0.01):
        estimator.feed_poses(t, poses)
        if isinstance(estimator, ModelFilter):
            estimator.feed_pressure(t, np.zeros(len(robot.chamber_names)))
            for sensor in sensors:
                if sensor.kind == 'ft':
                    estimator.feed_wrench(t, sensor.name, np.zeros(6))
                elif sensor.kind == 'fiber':
                    s = np.linspace(0.0, robot.length, 30)
                    estimator.feed_shape(t, sensor.name, s, np.stack([0.0 * s, 0.0 * s, s], 1))
    if estimator.started:
        estimator.estimate(0.02)


def main(args: list[str] | None = None) -> int:
    return run_node(StateEstimator, args)
