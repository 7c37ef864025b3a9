"""Parameters of `state_estimator`, and the filter and sensors that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from soft_dynamics.description.sensors import Sensor
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot, load
from soft_estimation.differentiate.differentiator import DifferentiatorConfig
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter

METHODS = ('model', 'differentiator')
POSE_KINDS = ('mocap', 'vive')


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
        0.3, unit='s', doc='without a sample let in that shows the shape no state is published'
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
        if not 1e-3 <= self.rate <= 1e4:
            raise ValueError(f'rate must be 0.001 to 10000, got {self.rate}')


class Setup(NamedTuple):
    """A config with its robot and the sensors that it uses."""

    config: Config
    robot: Robot
    sensors: list[Sensor]

    @classmethod
    def of(cls, config: Config) -> Setup:
        """Raises what the user is told: a file that is not there, sensors that the robot does not have."""
        robot = load(config.robot)
        return cls(config, robot, _chosen(config, robot))

    def named(self, *kinds: str) -> set[str]:
        """The names of the sensors of these kinds."""
        return {sensor.name for sensor in self.sensors if sensor.kind in kinds}

    @property
    def sees(self) -> bool:
        """Whether there are sensors that show the shape; with an F/T sensor alone it follows from the model."""
        return bool(self.named(*POSE_KINDS, 'fiber'))

    @property
    def weighs(self) -> bool:
        """Whether loads can be told: from an F/T sensor and one that shows the shape."""
        return self.config.method == 'model' and self.sees and bool(self.named('ft'))

    def make_filter(self) -> Any:
        """A ModelFilter or a PoseDifferentiator; ValueError if it does not fit the robot or the sensors."""
        if self.config.method == 'model':
            return ModelFilter(self.robot, self.config.filter)
        return PoseDifferentiator(
            self.robot, self.config.differentiator, sensors=[sensor.name for sensor in self.sensors]
        )


def _chosen(config: Config, robot: Robot) -> list[Sensor]:
    known = {sensor.name: sensor for sensor in robot.description.sensors}
    for name in config.sensors:
        if name not in known:
            raise ValueError(f'sensors: {robot.name} has {", ".join(known) or "none"}, got {name!r}')
    chosen = [known[name] for name in config.sensors or known]
    if config.method == 'differentiator':
        others = [sensor.name for sensor in chosen if sensor.kind not in POSE_KINDS]
        if config.sensors and others:
            raise ValueError(f'sensors: the differentiator takes tracked bodies only, got {others[0]!r}')
        chosen = [sensor for sensor in chosen if sensor.name not in others]
    if not chosen:
        raise ValueError(f'sensors: {robot.name} has none for the method {config.method}')
    return chosen
