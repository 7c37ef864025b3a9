"""The virtual rig: plant and devices in time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from scipy.spatial.transform import Rotation

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.diagnostics import OK, WARN, Status
from soft_dynamics.errors import shown
from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.rig.config import TICK, RigConfig
from soft_hw_bridge.rig.device_emulators import TIME_TOLERANCE, Device, Ft, HostClock, Mocap, Valves, Vive
from soft_hw_bridge.rig.fiber_emulation import Fiber
from soft_hw_bridge.rig.plant import Plant
from soft_hw_bridge.rig.remote_control import ControlServer

_NS = 1_000_000_000
LATE = 0.03  # [s] if it is later than this, the plant skips the time instead of catching up
REMEMBER = 5.0  # [s] duration of a warning
MOST_TICKS = 5  # between two polls of the network
_MOST_MASS = 100.0  # [kg] at the tip
_LONGEST_ADVANCE = 600.0  # [s] per request, which blocks other requests
_LARGEST_JUMP = 1e6  # [s] of the clock of a device


class RealClock(HostClock):
    """Plant time follows the clock of this computer."""

    def __init__(self) -> None:
        self._origin_ns = 0

    def start(self, t: float) -> None:
        self._origin_ns = time.time_ns() - round(t * _NS)

    def now_ns(self) -> int:
        return time.time_ns()

    def at_ns(self, t: float) -> int:
        return self._origin_ns + round(t * _NS)


class SteppedClock(HostClock):
    """Plant time is the only time."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant

    def start(self, _t: float) -> None: ...

    def now_ns(self) -> int:
        return self.at_ns(self._plant.t)

    def at_ns(self, t: float) -> int:
        return round(t * _NS)


class Rig:
    """A virtual rig. Its ports open at construction; `run` simulates, `close` ends it.

    on_tick: called with the plant time [s] after ticks; at pace `stepped` after each one.
    """

    def __init__(self, config: RigConfig, on_tick: Callable[[float], None] = lambda _: None) -> None:
        self.config = config
        self.plant = Plant(load_description(config.robot), config.step, config.tip_load, config.obstacle)
        self.clock = RealClock() if config.pace == 'real' else SteppedClock(self.plant)
        self.devices: dict[str, Device] = {}  # mocap, vive, fiber, ft (as in the robot file) and pressure
        self.slips = 0  # how often the plant skipped time because the computer was too slow
        self._on_tick = on_tick
        self._slip_t = float('-inf')  # time.monotonic of the last slip
        self._control = ControlServer(config.control_port, self._handle)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def ports(self) -> dict[str, Any]:
        """All ports, by device and parameter."""
        return {'control': self._control.port} | {name: device.ports for name, device in self.devices.items()}

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        for device in self.devices.values():
            device.close()
        self._control.close()

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Simulate until stopped.

        Raises NotConverged if the plant diverges.
        """
        while self.config.pace == 'stepped' and not is_stopped():
            self._control.serve(time.monotonic() + TICK)
            self._serve()
        due = time.monotonic()
        self.clock.start(self.plant.t)
        while not is_stopped():
            ticks = self._ticks_to_wait()
            due += ticks * TICK
            self._control.serve(due)
            late = time.monotonic() - due
            if late > LATE:
                due += late
                self._slip(late)
            self._serve()
            self.tick(ticks)

    def advance(self, seconds: float) -> None:
        """Advance as fast as the computer can."""
        for _ in range(round(seconds / TICK)):
            self._serve()
            self.tick()

    def tick(self, ticks: int = 1) -> None:
        """Advance some ticks; only the last one may have something due."""
        command = self._valves.command if self._valves else self.plant.pressure
        self.plant.step(command, ticks * self.config.substeps)
        t = self.plant.t
        for device in self.devices.values():
            if device.due <= t + TIME_TOLERANCE:
                device.tick(t)
        self._on_tick(t)

    def status(self) -> Status:
        """Return the status: whether the computer is fast enough."""
        values = {
            't [s]': f'{self.plant.t:.3f}',
            'slips': str(self.slips),
            'requests_refused': str(self._control.refused),
        }
        if time.monotonic() - self._slip_t < REMEMBER:
            return Status(WARN, 'this computer is too busy for real time', values)
        return Status(OK, f'{self.plant.description.name}, {self.config.pace} pace', values)

    # ---- inside --------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        config, plant, seed = self.config, self.plant, self.config.seed
        sensors: dict[str, list[Sensor]] = {}
        for sensor in plant.description.sensors:
            sensors.setdefault(sensor.kind, []).append(sensor)
        if 'mocap' in sensors:
            self.devices['mocap'] = Mocap(config.mocap, plant, sensors['mocap'], self.clock, seed)
        if 'vive' in sensors:
            self.devices['vive'] = Vive(config.vive, plant, sensors['vive'], seed + 1)
        if 'fiber' in sensors:
            self.devices['fiber'] = Fiber(config.fiber, plant, _only(sensors['fiber']), self.clock, seed + 2)
        self._ft = Ft(config.ft, plant, _only(sensors['ft']), seed + 3) if 'ft' in sensors else None
        if self._ft:
            self.devices['ft'] = self._ft
        self._valves = Valves(config.pressure, plant, seed + 4) if plant.pressure.size else None
        if self._valves:
            self.devices['pressure'] = self._valves

    def _ticks_to_wait(self) -> int:
        """Number of ticks until a device is due; grouping them saves wake-ups."""
        due = min([device.due for device in self.devices.values()], default=0.0)
        return max(1, min(math.ceil((due - TIME_TOLERANCE - self.plant.t) / TICK), MOST_TICKS))

    def _slip(self, late: float) -> None:
        """Continue from the present state, this many seconds late."""
        self.clock.start(self.plant.t)
        self.slips, self._slip_t = self.slips + 1, time.monotonic()
        if self._ft:
            self._ft.skip(late)

    def _serve(self) -> None:
        for device in self.devices.values():
            device.serve()

    def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request.get('command')
        if command == 'fault':
            set_faults(self._device(request).faults, request.get('set'))
        elif command == 'clear':
            for device in [self._device(request)] if 'device' in request else self.devices.values():
                device.clear()
        elif command == 'state':
            return self._state()
        elif command == 'advance':
            return self._advance(request.get('seconds'))
        elif command == 'load':
            self.plant.load(_number('mass', request.get('mass'), least=0.0, most=_MOST_MASS))
        else:
            raise ValueError(f'command must be fault, clear, load, state or advance, got {shown(command)}')
        return {}

    def _device(self, request: dict[str, Any]) -> Device:
        name = request.get('device')
        if not isinstance(name, str) or name not in self.devices:
            raise ValueError(f'device must be one of {", ".join(self.devices)}, got {shown(name)}')
        return self.devices[name]

    def _advance(self, seconds: Any) -> dict[str, Any]:
        if self.config.pace != 'stepped':
            raise ValueError(
                "time advances by itself at pace 'real'; start with pace 'stepped' to advance it"
            )
        self.advance(_number('seconds', seconds, least=TICK, most=_LONGEST_ADVANCE))
        return {'t': self.plant.t}

    def _state(self) -> dict[str, Any]:
        X_WF = self.plant.poses()
        quat_WF = Rotation.from_matrix(X_WF[:, :3, :3]).as_quat()
        rows = zip(self.plant.frame_names, X_WF[:, :3, 3].tolist(), quat_WF.tolist(), strict=True)
        return {
            't': self.plant.t,
            'frames': {name: {'position': p, 'quaternion': quat} for name, p, quat in rows},
            'base_wrench': self.plant.base_wrench().tolist(),
            'pressure': self.plant.pressure.tolist(),
            'command': self._valves.command.tolist() if self._valves else [],
            **self._writes(),
            'slips': self.slips,
        }

    def _writes(self) -> dict[str, Any]:
        """Return the number of set-point writes at the terminal, and the largest rise of a chamber in one [Pa]."""
        if self._valves is None:
            return {'writes': 0, 'largest_rise': 0.0}
        emulator = self._valves.emulator
        rise = emulator.largest_rise
        return {'writes': emulator.writes, 'largest_rise': 0.0 if rise is None else rise.rise}


def set_faults(faults: Faults, values: Any) -> None:
    """Set fields of the faults; ValueError names the first invalid one."""
    defaults = {f.name: f.default for f in fields(Faults) if f.init and f.name != 'seed'}
    if not isinstance(values, dict) or not values:
        raise ValueError(f'set must name at least one of {", ".join(defaults)}, got {shown(values)}')
    for name, value in values.items():
        if name not in defaults:
            raise ValueError(f'fault must be one of {", ".join(defaults)}, got {shown(name)}')
        kind = type(defaults[name])
        if kind is frozenset and not (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
        ):
            raise ValueError(f'{name} must be a list of names, got {shown(value)}')
        if kind is bool and not isinstance(value, bool):
            raise ValueError(f'{name} must be true or false, got {shown(value)}')
        if kind is float:
            most = _LARGEST_JUMP if name == 'clock_jump_s' else 1.0
            _number(name, value, -most if name == 'clock_jump_s' else 0.0, most)
    for name, value in values.items():
        setattr(faults, name, frozenset(value) if isinstance(value, list) else value)


def _number(name: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f'{name} must be a number of {least:g} to {most:g}, got {shown(value)}')
    return float(value)


def _only(sensors: list[Sensor]) -> Sensor:
    if len(sensors) > 1:
        raise ValueError(
            f'sensors: the virtual rig supports one of kind {sensors[0].kind!r}, the robot has {len(sensors)}'
        )
    return sensors[0]
