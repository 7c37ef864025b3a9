"""Valve terminals with Modbus TCP, on pymodbus' own server."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from soft_hw_bridge.emulators.faults import Faults

READ = 3


@dataclass
class Terminal:
    """The registers of one kind of terminal, in its own units; all in Pa above ambient to the outside.

    Subclasses say where things are. A terminal without a request for its time-out shuts its valves.
    """

    valves: int = 16
    outputs: int = 0  # first output register
    inputs: int = 100
    timeout_register: int = 200
    timeout_words: int = 1
    pascal: float = 100.0  # of one count
    timeout_s: float = 0.1
    setpoints: dict[int, int] = field(default_factory=dict)  # register of the valve: counts
    actual: dict[int, float] = field(default_factory=dict)  # valve: Pa

    def output_words(self) -> int:
        """Return how many output registers there are."""
        return self.valves

    def input_words(self) -> int:
        """Return how many input registers there are."""
        return self.valves

    def setpoint_register(self, valve: int) -> int:
        """Return where the set point of a valve is."""
        return self.outputs + valve

    def input_image(self) -> list[int]:
        """Return the input registers as they are now."""
        return [self._count(valve) for valve in range(self.valves)]

    def write(self, register: int, value: int) -> None:
        """Take an output register."""
        self.setpoints[register] = value

    def shut(self) -> None:
        """Take the air away: all outputs fall to zero."""
        self.setpoints.clear()

    def commanded(self) -> list[float]:
        """Return the set points of all valves [Pa]."""
        counts = (self.setpoints.get(self.setpoint_register(valve), 0) for valve in range(self.valves))
        return [count * self.pascal for count in counts]

    def _count(self, valve: int) -> int:
        return round(self.actual.get(valve, 0.0) / self.pascal) % 65536


@dataclass
class GenericTerminal(Terminal):
    """Set points from 0, measurements from 100, time-out at 200, 10 Pa a count."""

    valves: int = 32
    pascal: float = 10.0


@dataclass
class MpaTerminal(Terminal):
    """CPX with VPPM on MPA: per valve an output word and three input words: actual, set point, diagnosis."""

    outputs: int = 40003
    inputs: int = 45395
    timeout_register: int = 46100

    def input_words(self) -> int:
        return 3 * self.valves

    def input_image(self) -> list[int]:
        words = []
        for valve in range(self.valves):
            words += [self._count(valve), self.setpoints.get(self.setpoint_register(valve), 0), 0]
        return words


@dataclass
class VtemTerminal(Terminal):
    """CPX with VTEM: per slot of two valves an app word and two set points, which hold while app 3 runs."""

    outputs: int = 40003
    inputs: int = 45395
    timeout_register: int = 46100
    apps: dict[int, int] = field(default_factory=dict)  # slot: app word
    started: dict[int, float] = field(default_factory=dict)  # slot: when the app was chosen
    start_time: float = 0.2  # [s] an app takes to start

    def output_words(self) -> int:
        return 3 * (self.valves // 2)

    def input_words(self) -> int:
        return 3 * (self.valves // 2)

    def setpoint_register(self, valve: int) -> int:
        slot, side = divmod(valve, 2)
        return self.outputs + slot * 3 + 1 + side

    def write(self, register: int, value: int) -> None:
        slot, word = divmod(register - self.outputs, 3)
        if word:
            super().write(register, value)
        elif self.apps.get(slot) != value:
            self.apps[slot], self.started[slot] = value, time.monotonic()

    def shut(self) -> None:
        super().shut()
        self.apps.clear()

    def state(self, slot: int) -> int:
        """Return 2 while pressure regulation runs, 1 when the slot is off, 0 on the way."""
        app = self.apps.get(slot, 61)
        if app == 3 + (3 << 6):
            return 2 if time.monotonic() - self.started[slot] > self.start_time else 0
        return 1

    def commanded(self) -> list[float]:
        return [p if self.state(valve // 2) == 2 else 0.0 for valve, p in enumerate(super().commanded())]

    def input_image(self) -> list[int]:
        words = []
        for slot in range(self.valves // 2):
            app = self.apps.get(slot, 61) & 63
            words += [self.state(slot) << 6 | app, self._count(2 * slot), self._count(2 * slot + 1)]
        return words


@dataclass
class CpxApTerminal(Terminal):
    """CPX-AP: outputs from 0, inputs from 5000, the time-out in two words."""

    valves: int = 32
    inputs: int = 5000
    timeout_register: int = 14000
    timeout_words: int = 2


class ModbusEmulator:
    """Serves a terminal on loopback; it keeps what was commanded, for others to see and to answer to."""

    def __init__(self, terminal: Terminal, port: int = 0) -> None:
        self.faults = Faults()
        self.terminal = terminal
        self.requests = 0
        self.highest = [0.0] * terminal.valves  # [Pa] ever commanded
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name='modbus_emulator', daemon=True)
        self._thread.start()
        self.port = port
        self._run(self._listen())

    def commanded(self) -> list[float]:
        """Return the set points [Pa] that hold now: none when the client has been silent for too long."""
        if self.faults.restart:
            self.faults.restart = False
            self._run(self._restart())
        with self._lock:
            if time.monotonic() - self._heard > self.terminal.timeout_s:
                self.terminal.shut()
            return self.terminal.commanded()

    def set_actual(self, pressures: list[float]) -> None:
        """Let the valves' sensors read these pressures [Pa]."""
        with self._lock:
            self.terminal.actual = dict(enumerate(pressures))

    def close(self) -> None:
        """Stop serving."""
        self._run(self._shutdown())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        t = self.terminal
        blocks = [
            SimData(t.outputs, count=t.output_words(), values=0, datatype=DataType.REGISTERS),
            SimData(t.inputs, count=t.input_words(), values=0, datatype=DataType.REGISTERS, readonly=True),
            SimData(t.timeout_register, count=t.timeout_words, values=0, datatype=DataType.REGISTERS),
        ]
        device = SimDevice(0, simdata=blocks, action=self._access)
        self._server = ModbusTcpServer(device, address=('127.0.0.1', self.port))
        await self._server.serve_forever(background=True)
        self.port = self._server.transport.sockets[0].getsockname()[1]  # type: ignore[attr-defined]

    async def _shutdown(self) -> None:
        await self._server.shutdown()  # type: ignore[no-untyped-call]
        for request in asyncio.all_tasks() - {asyncio.current_task()}:
            request.cancel()

    async def _restart(self) -> None:
        await self._shutdown()
        self.terminal.shut()
        await self._listen()

    async def _access(
        self,
        function: int,
        start: int,
        address: int,
        _count: int,
        registers: list[int],
        values: list[int] | list[bool] | None,
    ) -> ExcCodes | None:
        """Look at a request before it is answered; pymodbus stores and fetches the registers itself."""
        if self.faults.silent:
            await asyncio.sleep(1.0)
            return ExcCodes.DEVICE_BUSY
        with self._lock:
            now = time.monotonic()
            if now - self._heard > self.terminal.timeout_s:
                self.terminal.shut()
            self._heard = now
            self.requests += 1
            if function == READ:
                first = self.terminal.inputs - start
                image = self.terminal.input_image()
                registers[first : first + len(image)] = image
            elif values:
                self._written(address, [int(value) for value in values])
        return None

    def _written(self, address: int, values: list[int]) -> None:
        timeout = self.terminal.timeout_register
        if address == timeout:
            milliseconds = sum(value << 16 * k for k, value in enumerate(values))
            self.terminal.timeout_s = milliseconds / 1000 if milliseconds else float('inf')
            return
        for offset, value in enumerate(values):
            self.terminal.write(address + offset, value)
        self.highest = [max(a, b) for a, b in zip(self.highest, self.terminal.commanded(), strict=True)]

    def _run(self, coroutine: object) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30.0)  # type: ignore[arg-type]
