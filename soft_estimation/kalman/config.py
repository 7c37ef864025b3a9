"""Parameters of the model-based filter."""

from __future__ import annotations

from dataclasses import dataclass

from soft_dynamics.reader import quantity

from .process_model import ProcessNoise
from .sensors import SENSORS, SensorNoise
from .sensors.bodies import PoseNoise


@dataclass(frozen=True)
class FilterConfig(SensorNoise):
    """Noise of the sensors and how the filter treats doubtful samples."""

    process: ProcessNoise = ProcessNoise()
    gate_probability: float = quantity(0.9999, doc='with which a right sample passes the gate')
    misfit: float = quantity(
        3.0, doc='by which the model may miss a sample in the gate, in units of noise and misfit'
    )
    history: float = quantity(0.25, unit='s', doc='samples may come this late')
    recovery_time: float = quantity(0.1, unit='s', doc='of refusals only, after which the state is lost')
    start_spread: float = quantity(1.0, unit='rad or m', doc='of the coordinates at the start')
    start_rate_spread: float = quantity(5.0, unit='rad/s or m/s', doc='of the rates at the start')

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
