"""Parameters of the model-based filter."""

from __future__ import annotations

from dataclasses import dataclass

from soft_dynamics.reader import quantity

from .process_model import ProcessNoise
from .sensor_models import PoseNoise


@dataclass(frozen=True)
class FilterConfig:
    """Noise of the sensors and handling of outliers."""

    process: ProcessNoise = ProcessNoise()
    mocap_rotation_noise: float = quantity(2e-3, unit='rad', doc='rotation noise of a body in motion capture')
    mocap_position_noise: float = quantity(3e-4, unit='m', doc='position noise of a body in motion capture')
    vive_rotation_noise: float = quantity(5e-3, unit='rad', doc='rotation noise of a Vive tracker')
    vive_position_noise: float = quantity(1.5e-3, unit='m', doc='position noise of a Vive tracker')
    place_misfit: float = quantity(
        0.05,
        unit='1/rad',
        doc="model error of the place of a bent segment's end, relative to its length",
    )
    twist_misfit: float = quantity(
        0.1,
        unit='1/rad',
        doc='model error of the twist of a bent segment, relative to its squared bend',
    )
    misfit_samples: float = quantity(
        36.0, doc='poses of a body that share a misfit, which lasts as long as the bend'
    )
    shape_noise: float = quantity(5e-4, unit='m', doc='noise of each point of a fiber')
    shape_rotation_noise: float = quantity(
        0.05,
        unit='rad',
        doc="noise of a fiber's direction relative to the body; enlarged, since the error lasts",
    )
    shape_places: int = quantity(12, doc='points of a fiber in an update')
    torque_noise: float = quantity(
        2.0,
        unit='N m',
        doc='torque noise of the base force/torque sensor; enlarged, since model errors last',
    )
    force_noise: float = quantity(6.0, unit='N', doc='force noise of the base force/torque sensor')
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
        of_kind = {
            'mocap': (self.mocap_rotation_noise, self.mocap_position_noise),
            'vive': (self.vive_rotation_noise, self.vive_position_noise),
            'fiber': (self.shape_rotation_noise, self.shape_noise),
        }
        return PoseNoise(of_kind, (self.place_misfit, self.twist_misfit), self.misfit_samples)
