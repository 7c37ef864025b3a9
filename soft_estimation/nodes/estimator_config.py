"""Parameters of `state_estimator`, with its filter and sensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from soft_dynamics.description.sensors import Sensor
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot, load
from soft_estimation.differentiate.differentiator import DifferentiatorConfig
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter
from soft_estimation.kalman.sensors import SENSORS

METHODS = ('model', 'differentiator')


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    robot: str = quantity('honeycomb_arm', doc='shipped robot or robot file')
    method: str = quantity('model', doc='model or differentiator (poses only, no dynamics)')
    sensors: tuple[str, ...] = quantity(
        (), doc='sensors of the robot file to use; empty: all that the method supports'
    )
    rate: float = quantity(
        200.0,
        unit='Hz',
        doc='largest rate of the state; the docs say when it is published',
    )
    sensor_rate: float = quantity(
        125.0,
        unit='Hz',
        doc='drop samples of a sensor beyond this rate, or beyond `rate` if that is higher',
    )
    blackout_limit: float = quantity(
        0.3,
        unit='s',
        doc='stop publishing if the last accepted sample that shows the shape is older',
    )
    at_samples: bool = quantity(
        False,
        doc='process samples in order of stamps, 50 ms late; publish states at their times: repeatable from a bag',
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
    """A config with its robot and sensors."""

    config: Config
    robot: Robot
    sensors: list[Sensor]

    @classmethod
    def of(cls, config: Config) -> Setup:
        """Load robot and sensors; raises errors for the user, such as a missing file or an unknown sensor."""
        robot = load(config.robot)
        return cls(config, robot, _chosen(config, robot))

    def named(self, *kinds: str) -> set[str]:
        """Return the names of the sensors of these kinds."""
        return {sensor.name for sensor in self.sensors if sensor.kind in kinds}

    @property
    def sees(self) -> bool:
        """Whether a sensor shows the shape; with an F/T sensor alone it follows from the model."""
        return any(SENSORS[sensor.kind].shows_shape for sensor in self.sensors)

    @property
    def weighs(self) -> bool:
        """Whether loads can be estimated: needs an F/T sensor and one that shows the shape."""
        return self.config.method == 'model' and self.sees and bool(self.named('ft'))

    def make_filter(self) -> Any:
        """Return a ModelFilter or a PoseDifferentiator; ValueError if it does not fit the robot or the sensors."""
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
        others = [sensor.name for sensor in chosen if not SENSORS[sensor.kind].is_body]
        if config.sensors and others:
            raise ValueError(f'sensors: the differentiator uses tracked bodies only, got {others[0]!r}')
        chosen = [sensor for sensor in chosen if sensor.name not in others]
    if not chosen:
        raise ValueError(f'sensors: {robot.name} has none for method {config.method}')
    return chosen
