"""Parameters of the model-based filter."""

from __future__ import annotations

from dataclasses import dataclass

from soft_dynamics.reader import quantity

from .process_model import ProcessNoise
from .sensors import SENSORS, SensorNoise
from .sensors.bodies import PoseNoise


@dataclass(frozen=True)
class FilterConfig(SensorNoise):
    """Noise of the sensors and handling of outliers."""

    process: ProcessNoise = ProcessNoise()
    gate_probability: float = quantity(0.9999, doc='probability that a correct sample passes the gate')
    misfit: float = quantity(3.0, doc='model error that the gate allows, in units of noise and misfit')
    history: float = quantity(0.25, unit='s', doc='how late a sample may arrive')
    recovery_time: float = quantity(
        0.1,
        unit='s',
        doc='time of rejections after which the state counts as lost',
    )
    start_spread: float = quantity(1.0, unit='rad or m', doc='initial standard deviation of the coordinates')
    start_rate_spread: float = quantity(
        5.0, unit='rad/s or m/s', doc='initial standard deviation of the rates'
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.endswith('_misfit') and not value >= 0.0:
                raise ValueError(f'{name} must be >= 0, got {value}')
            if name != 'process' and not name.endswith('_misfit') and not value > 0.0:
                raise ValueError(f'{name} must be > 0, got {value}')
        if not self.gate_probability < 1.0:
            raise ValueError(f'gate_probability must be < 1, got {self.gate_probability}')

    @property
    def pose_noise(self) -> PoseNoise:
        of_kind = {kind: sensor.noise(self) for kind, sensor in SENSORS.items()}
        return PoseNoise(of_kind, (self.place_misfit, self.twist_misfit), self.misfit_samples)
