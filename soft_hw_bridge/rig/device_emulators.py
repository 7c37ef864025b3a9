"""Virtual devices: measurements of the plant, and their emulators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from soft_dynamics.array import Array
from soft_dynamics.description.sensors import Sensor
from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.modbus import (
    CpxApTerminal,
    GenericTerminal,
    ModbusEmulator,
    MpaTerminal,
    Terminal,
    VtemTerminal,
)
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.netft import NetFtEmulator
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.pose import Pose
from soft_hw_bridge.rig.config import FtConfig, MocapConfig, PressureConfig, StreamConfig, ViveConfig
from soft_hw_bridge.rig.mujoco_model import sensor_site
from soft_hw_bridge.rig.plant import Plant

TIME_TOLERANCE = 1e-6  # [s] rounding error of summed times

_TERMINALS: dict[str, type[Terminal]] = {
    'generic': GenericTerminal,
    'festo_mpa_vppm': MpaTerminal,
    'festo_vtem': VtemTerminal,
    'festo_cpx_ap': CpxApTerminal,
}


class HostClock(ABC):
    """Clock of the host computer, and the time of the plant on it."""

    @abstractmethod
    def start(self, t: float) -> None:
        """Set the current time of the plant to t [s]."""

    @abstractmethod
    def now_ns(self) -> int: ...

    @abstractmethod
    def at_ns(self, t: float) -> int:
        """Return the host time at plant time t [s]."""


class Device(ABC):
    """Samples the plant at its rate and passes each sample to its emulator after the delay."""

    has_thread = True  # the emulator answers in its own thread

    def __init__(
        self, config: StreamConfig, plant: Plant, emulator: Any, ports: dict[str, int], seed: int
    ) -> None:
        self.plant = plant
        self.emulator = emulator
        self.ports = ports  # by parameter name
        self.random = np.random.default_rng(seed)
        self._stream = config
        self.due = 0.0  # [s] time of the next sample or packet
        self._taken = 0  # samples
        self._measured: Any = None  # last measurement
        self._waiting: deque[tuple[float, Any]] = deque()  # samples and their times
        self.clear()

    @property
    def faults(self) -> Faults:
        faults: Faults = self.emulator.faults
        return faults

    @abstractmethod
    def measure(self) -> Any:
        """Return a measurement of the present state."""

    @abstractmethod
    def send(self, t: float, sample: Any) -> None:
        """Pass a sample of plant time t [s] to the emulator."""

    def serve(self) -> None:
        """Answer requests that have arrived."""
        if not self.has_thread:
            self.emulator.serve()

    def clear(self) -> None:
        """Remove all faults except the configured losses."""
        self.faults.clear()
        self.faults.drop = self._stream.drop

    def tick(self, t: float) -> None:
        """Sample and send what is due at time t [s]."""
        rate, delay, waiting = self._stream.rate, self._stream.delay, self._waiting
        reached = t + TIME_TOLERANCE
        if self._taken / rate <= reached:
            self._taken += 1
            sample = self.measure()
            if not self.faults.stuck or self._measured is None:
                self._measured = sample
            waiting.append((t, self._measured))
        while waiting and waiting[0][0] + delay <= reached:
            self.send(*waiting.popleft())
        self.due = self._taken / rate
        if waiting:
            self.due = min(self.due, waiting[0][0] + delay)

    def close(self) -> None:
        self.emulator.close()


def noise(random: np.random.Generator, sigma: Array) -> Iterator[Array]:
    """Yield noise with these standard deviations, drawn in blocks to save calls."""
    while True:
        yield from sigma * random.standard_normal((256, sigma.size))


class Mounted:
    """Pose sensors S on the plant."""

    def __init__(self, plant: Plant, sensors: Sequence[Sensor]) -> None:
        self.names = [sensor.name for sensor in sensors]
        self._sites = np.array([plant.model.site(sensor_site(sensor)).id for sensor in sensors], dtype=int)
        self._site_xpos = plant.data.site_xpos
        self._half_turns, self._quat_WS = np.ones((2, len(sensors), 4))  # MuJoCo has w first
        R_WS = [plant.data.site_xmat[site] for site in self._sites]  # views of MuJoCo's own arrays
        self._rotations = list(zip(R_WS, self._half_turns, self._quat_WS, strict=True))

    def measured(self, config: MocapConfig | ViveConfig, random: np.random.Generator) -> dict[str, Pose]:
        """Return the poses in W with noise."""
        shift, turn = random.standard_normal((2, len(self.names), 3))
        p_WS = self._site_xpos.take(self._sites, axis=0) + config.noise_position * shift
        self._half_turns[:, 1:] = 0.5 * config.noise_rotation * turn
        for R_WS, half_turn, quat_WS in self._rotations:
            mujoco.mju_mat2Quat(quat_WS, R_WS)
            mujoco.mju_mulQuat(quat_WS, quat_WS, half_turn)
            mujoco.mju_normalize4(quat_WS)
        rows = zip(self.names, p_WS.tolist(), self._quat_WS.tolist(), strict=True)
        return {name: Pose((x, y, z), (qx, qy, qz, qw)) for name, (x, y, z), (qw, qx, qy, qz) in rows}


class Mocap(Device):
    has_thread = False

    def __init__(
        self, config: MocapConfig, plant: Plant, sensors: Sequence[Sensor], clock: HostClock, seed: int
    ) -> None:
        self._config = config
        self._clock = clock
        self._bodies = Mounted(plant, sensors)
        major, minor = config.natnet.split('.')
        settings = MotiveSettings(
            version=(int(major), int(minor)),
            is_multicast=config.multicast,
            up_axis=config.up_axis,
            command_port=config.port,
            data_port=config.data_port,
            clock_offset_s=config.clock_offset,
            clock_drift_ppm=config.clock_drift,
        )
        motive = NatNetEmulator(self._bodies.names, settings, now_ns=clock.now_ns)
        super().__init__(
            config, plant, motive, {'port': motive.command_port, 'data_port': motive.data_port}, seed
        )

    def measure(self) -> dict[str, Pose]:
        return self._bodies.measured(self._config, self.random)

    def send(self, t: float, sample: dict[str, Pose]) -> None:
        self.emulator.send(sample, self._clock.at_ns(t))


class Vive(Device):
    has_thread = False

    def __init__(self, config: ViveConfig, plant: Plant, sensors: Sequence[Sensor], seed: int) -> None:
        self._config = config
        self._trackers = Mounted(plant, sensors)
        steam_vr = OpenVrEmulator(self._trackers.names, port=config.port)
        super().__init__(config, plant, steam_vr, {'port': steam_vr.port}, seed)

    def measure(self) -> dict[str, Pose]:
        return self._trackers.measured(self._config, self.random)

    def send(self, _t: float, sample: dict[str, Pose]) -> None:
        self.emulator.send(sample)


class Ft(Device):
    """Measures the wrench on the robot at its base: torque and force about the sensor S, in its axes."""

    def __init__(self, config: FtConfig, plant: Plant, sensor: Sensor, seed: int) -> None:
        if sensor.frame != 'base':
            raise ValueError(
                f'sensor {sensor.name!r}: the virtual rig has force/torque sensors at the base only'
            )
        R_SB, (x, y, z) = Rotation.from_euler('xyz', sensor.rpy).inv().as_matrix(), sensor.position
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        # Force and torque about S from torque and force at B.
        self._readings = np.block([[np.zeros((3, 3)), R_SB], [R_SB, -R_SB @ cross]])
        sigma = np.repeat([config.noise_force, config.noise_torque], 3)
        box = NetFtEmulator(config.rate, rdt_port=config.port, http_port=config.http_port)
        super().__init__(config, plant, box, {'port': box.rdt_port, 'http_port': box.http_port}, seed)
        self._noise = noise(self.random, sigma)

    def measure(self) -> tuple[list[float], list[float]]:
        """Return force and torque."""
        readings = (self._readings.dot(self.plant.base_wrench()) + next(self._noise)).tolist()
        return readings[:3], readings[3:]

    def send(self, _t: float, sample: tuple[list[float], list[float]]) -> None:
        self.emulator.send(*sample)

    def skip(self, seconds: float) -> None:
        """Keep counting while the plant stands still: the sample count is the only clock of the box."""
        self.emulator.skip(round(seconds * self._stream.rate))


class Valves(Device):
    """Pressure I/O: `command` has the last set points."""

    def __init__(self, config: PressureConfig, plant: Plant, seed: int) -> None:
        sigma = config.noise * plant.description.actuation.pressure_max
        self.command = np.zeros(plant.pressure.size)  # [Pa]
        terminal = _TERMINALS[config.terminal]()
        if config.scale:
            terminal.pascal = config.scale
        if terminal.valves < self.command.size:
            raise ValueError(
                f'terminal {config.terminal} has {terminal.valves} valves, the robot needs {self.command.size}'
            )
        server = ModbusEmulator(terminal, config.port)
        super().__init__(config, plant, server, {'port': server.port}, seed)
        self._noise = noise(self.random, np.full(self.command.size, sigma))

    def measure(self) -> list[float]:
        """Return the sensor readings, which are never below ambient."""
        self.command = np.array(self.emulator.commanded()[: self.command.size])
        return np.maximum(self.plant.pressure + next(self._noise), 0.0).tolist()

    def send(self, _t: float, sample: list[float]) -> None:
        if not self.faults.frozen:
            self.emulator.set_actual(sample)
