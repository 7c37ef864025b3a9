"""Parameters of the model-based filter."""

from __future__ import annotations

from dataclasses import dataclass

from soft_dynamics.reader import quantity

from .process_model import ProcessNoise
from .sensor_models import PoseNoise


@dataclass(frozen=True)
class FilterConfig:
    """Noise of the sensors and how the filter treats doubtful samples."""

    process: ProcessNoise = ProcessNoise()
    mocap_rotation_noise: float = quantity(2e-3, unit='rad', doc='of a body in motion capture')
    mocap_position_noise: float = quantity(3e-4, unit='m', doc='of a body in motion capture')
    vive_rotation_noise: float = quantity(5e-3, unit='rad', doc='of a Vive tracker')
    vive_position_noise: float = quantity(1.5e-3, unit='m', doc='of a Vive tracker')
    place_misfit: float = quantity(
        0.05, unit='1/rad', doc="of the place of a bent segment's end, in parts of its length"
    )
    twist_misfit: float = quantity(0.1, unit='1/rad', doc='of a bent segment, in parts of its squared bend')
    misfit_samples: float = quantity(
        36.0, doc='poses of a body that share a misfit, because it lasts as long as the bend'
    )
    shape_noise: float = quantity(5e-4, unit='m', doc='of each point of a fiber')
    shape_rotation_noise: float = quantity(
        0.05, unit='rad', doc='of its direction against that of the body, which lasts: larger than it is'
    )
    shape_places: int = quantity(12, doc='points of a fiber that enter')
    torque_noise: float = quantity(
        2.0, unit='N m', doc='of the base force/torque sensor; what the model misses lasts: larger than it is'
    )
    force_noise: float = quantity(6.0, unit='N', doc='of the base force/torque sensor')
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
        of_kind = {
            'mocap': (self.mocap_rotation_noise, self.mocap_position_noise),
            'vive': (self.vive_rotation_noise, self.vive_position_noise),
            'fiber': (self.shape_rotation_noise, self.shape_noise),
        }
        return PoseNoise(of_kind, (self.place_misfit, self.twist_misfit), self.misfit_samples)
