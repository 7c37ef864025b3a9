"""Parameters of the virtual rig: everything that is not in the robot file."""

from __future__ import annotations

from dataclasses import dataclass, fields

from soft_dynamics.reader import quantity

TICK = 1e-3  # [s] period at which the devices are served
PACES = ('real', 'stepped')
TERMINALS = ('generic', 'festo_mpa_vppm', 'festo_vtem', 'festo_cpx_ap')
PROTOCOLS = ('shp1', 'odisi', 'fbgs_strain', 'fbgs_shape')


@dataclass(frozen=True)
class StreamConfig:
    """Settings that all devices share. Probabilities and noise describe a healthy device; faults add to them."""

    port: int = quantity(0, doc='port on 127.0.0.1; 0: any free port')
    rate: float = quantity(100.0, unit='Hz', doc='rate of samples')
    delay: float = quantity(0.0, unit='s', doc='delay from the sample to its transmission')
    drop: float = quantity(0.0, doc='probability of losing a packet')

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith('port') and not 0 <= value < 65536:
                raise ValueError(f'{field.name} must be in 0..65535, got {value}')
            if field.name.startswith(('noise', 'delay')) and not 0 <= value < float('inf'):
                raise ValueError(f'{field.name} must be >= 0, got {value}')
        if not 0 < self.rate <= 1 / TICK:
            raise ValueError(f'rate must be in (0, {1 / TICK:g}] Hz, got {self.rate}')
        if not 0 <= self.drop <= 1:
            raise ValueError(f'drop must be in 0..1, got {self.drop}')


@dataclass(frozen=True)
class MocapConfig(StreamConfig):
    """An emulated Motive with the robot's mocap sensors as rigid bodies; `port` receives commands."""

    rate: float = quantity(120.0, unit='Hz', doc='rate of frames')
    delay: float = quantity(0.004, unit='s', doc='delay from mid-exposure to the transmission of the frame')
    data_port: int = quantity(0, doc='port of multicast frames')
    natnet: str = quantity('4.1', doc='NatNet version, 3.0 to 4.2')
    multicast: bool = quantity(False, doc='send frames to the group 239.255.42.99')
    up_axis: str = quantity('y', doc='up axis of the frames: y or z')
    clock_offset: float = quantity(
        3600.0, unit='s', doc='offset of the device clock from the clock of this computer'
    )
    clock_drift: float = quantity(20.0, unit='ppm', doc='drift of the device clock; positive: fast')
    noise_position: float = quantity(1e-4, unit='m', doc='standard deviation of positions')
    noise_rotation: float = quantity(1e-3, unit='rad', doc='standard deviation of rotations about each axis')

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.natnet not in ('3.0', '3.1', '4.0', '4.1', '4.2'):
            raise ValueError(f'natnet must be 3.0, 3.1, 4.0, 4.1 or 4.2, got {self.natnet!r}')
        if self.up_axis not in ('y', 'z'):
            raise ValueError(f"up_axis must be 'y' or 'z', got {self.up_axis!r}")


@dataclass(frozen=True)
class ViveConfig(StreamConfig):
    """An emulated SteamVR with the robot's Vive sensors as trackers; their names are the serial numbers."""

    rate: float = quantity(250.0, unit='Hz', doc='rate of poses')
    delay: float = quantity(0.002, unit='s', doc='delay from the pose to its transmission')
    noise_position: float = quantity(5e-4, unit='m', doc='standard deviation of positions')
    noise_rotation: float = quantity(2e-3, unit='rad', doc='standard deviation of rotations about each axis')


@dataclass(frozen=True)
class FiberConfig(StreamConfig):
    """A shape sensor along the body."""

    delay: float = quantity(0.004, unit='s', doc='delay from the sample to its transmission')
    protocol: str = quantity('shp1', doc='protocol: shp1, odisi, fbgs_strain or fbgs_shape')
    spacing: float = quantity(0.8e-3, unit='m', doc='distance between points or gages')
    grating_spacing: float = quantity(0.01, unit='m', doc='distance between the gratings of FBGS')
    core_radius: tuple[float, ...] = quantity(
        (0.005,) * 3, unit='m', doc='distance of each core from the centre'
    )
    core_angle: tuple[float, ...] = quantity(
        (0.0, 2.0943951, 4.1887902), unit='rad', doc='direction of each core, from x to y'
    )
    noise_position: float = quantity(2e-4, unit='m', doc='standard deviation of points')
    noise_strain: float = quantity(1e-6, doc='standard deviation of strain')

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protocol not in PROTOCOLS:
            raise ValueError(f'protocol must be one of {", ".join(PROTOCOLS)}, got {self.protocol!r}')
        if not min(self.spacing, self.grating_spacing) > 0:
            raise ValueError('spacing and grating_spacing must be > 0')
        if len(self.core_radius) != len(self.core_angle):
            raise ValueError(f'core_angle must have {len(self.core_radius)} numbers, like core_radius')


@dataclass(frozen=True)
class FtConfig(StreamConfig):
    """An emulated Net F/T box under the base; `port` is for RDT."""

    rate: float = quantity(1000.0, unit='Hz', doc='rate of records')
    http_port: int = quantity(0, doc='port of the calibration page')
    noise_force: float = quantity(0.02, unit='N', doc='standard deviation of forces')
    noise_torque: float = quantity(1e-3, unit='N m', doc='standard deviation of torques')


@dataclass(frozen=True)
class PressureConfig(StreamConfig):
    """Emulated valves on Modbus TCP: chamber i is on channel i."""

    rate: float = quantity(500.0, unit='Hz', doc='rate of updating valves and sensors')
    terminal: str = quantity(
        'festo_mpa_vppm', doc='type of the terminal: generic, festo_mpa_vppm, festo_vtem or festo_cpx_ap'
    )
    scale: float = quantity(0.0, unit='Pa', doc='pressure of one count; 0: default of the terminal')
    noise: float = quantity(2e-4, doc='standard deviation, as a fraction of the largest pressure')

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terminal not in TERMINALS:
            raise ValueError(f'terminal must be one of {", ".join(TERMINALS)}, got {self.terminal!r}')
        if not self.scale >= 0:
            raise ValueError(f'scale must be >= 0, got {self.scale}')


@dataclass(frozen=True)
class RigConfig:
    """A robot with load and obstacle, and its devices: the sensors of its file and the valves."""

    robot: str = quantity('honeycomb_arm', doc='name of a shipped robot, or path of a robot file')
    pace: str = quantity(
        'real', doc='time source: real (clock of this computer) or stepped (by the control port)'
    )
    step: float = quantity(1e-3, unit='s', doc='step of the integrator; an integer fraction of 1 ms')
    tip_load: float = quantity(0.0, unit='kg', doc='mass added to the tip load of the robot file')
    obstacle: tuple[float, ...] = quantity(
        (),
        unit='m',
        doc='obstacle in the world: x, y, z, radius of a sphere, or both ends and radius of a capsule',
    )
    seed: int = quantity(0, doc='seed of all noise')
    control_port: int = quantity(0, doc='UDP port on 127.0.0.1 for faults and ground truth; 0: any free port')
    mocap: MocapConfig = MocapConfig()
    vive: ViveConfig = ViveConfig()
    fiber: FiberConfig = FiberConfig()
    ft: FtConfig = FtConfig()
    pressure: PressureConfig = PressureConfig()

    def __post_init__(self) -> None:
        if self.pace not in PACES:
            raise ValueError(f'pace must be one of {", ".join(PACES)}, got {self.pace!r}')
        if not 0 < self.step <= TICK or abs(TICK / self.step - self.substeps) > 1e-6:
            raise ValueError(f'step must be {TICK:g} s divided by an integer, got {self.step}')
        if not self.tip_load >= 0:
            raise ValueError(f'tip_load must be >= 0, got {self.tip_load}')
        if not 0 <= self.control_port < 65536:
            raise ValueError(f'control_port must be in 0..65535, got {self.control_port}')

    @property
    def substeps(self) -> int:
        """Integrator steps per tick."""
        return round(TICK / self.step)
