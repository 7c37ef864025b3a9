"""The device process: effect on the emulated valves when either process ends, or on an emergency stop."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.config import PressureConfig
from soft_hw_bridge.pressure.modbus_device import ModbusConfig
from soft_hw_bridge.pressure.remote_stream import RemoteStream

ROBOT = load_description('pneumatic_arm')
N = len(ROBOT.actuation.chambers)
RATE = 100.0  # [Hz]
FILLED = 100e3  # [Pa]
PATIENCE_S = 30.0


class Rig:
    """Valves, the stream, and a thread that polls it like the node."""

    def __init__(self) -> None:
        self.valves = ModbusEmulator(MpaTerminal())
        where = ModbusConfig('127.0.0.1', self.valves.port)
        self.stream = RemoteStream(PressureConfig(ROBOT.name, rate=RATE, modbus=where))
        self._numbers = itertools.count(1)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._end.is_set():
            self.stream.poll()

    def stop_polling(self) -> None:
        self._end.set()
        self._thread.join()

    def close(self) -> None:
        self.stop_polling()
        self.stream.close()
        self.valves.close()

    def command(self, pressure: float) -> None:
        self.stream.command(
            Command(boot_time(), time.time_ns(), next(self._numbers), False, b'', (pressure,) * N)
        )

    def until(self, condition: Callable[[], bool], pressure: float | None = None) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.stream.status()
            if pressure is not None:
                self.command(pressure)
            time.sleep(0.005)

    def until_told(self, line: str, pressure: float | None = None) -> None:
        self.until(lambda: line in self.stream.status().message, pressure)

    def holds(self, pressure: float) -> bool:
        return self.valves.commanded()[:N] == pytest.approx([pressure] * N, abs=50.0 if pressure else 0.0)

    def fill(self) -> None:
        self.until_told('vented: disarmed')
        self.stream.arm()
        self.until_told('following commands', 0.0)
        self.until(lambda: self.holds(FILLED), FILLED)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def test_an_emergency_stop_answers_when_the_valves_hold_zero(rig: Rig) -> None:
    """I12: the process reports what it has read back from the device."""
    rig.fill()
    assert rig.stream.emergency_stop() == (True, 'vented: the device holds zero')
    assert rig.holds(0.0)


def test_an_emergency_stop_in_the_start_holds_whatever_comes_after_it(rig: Rig) -> None:
    """I12: neither the start nor a later arm inflates a chamber; a disarm followed by an arm does."""
    rig.stream._process.send_signal(signal.SIGSTOP)
    is_vented, known = rig.stream.emergency_stop()
    assert not is_vented
    assert 'still starting' in known
    rig.stream._process.send_signal(signal.SIGCONT)
    rig.stream.arm()
    rig.until_told('vented: emergency stop', 0.0)
    received = rig.stream.status().values['received']
    rig.until(lambda: int(str(rig.stream.status().values['received'])) > int(str(received)) + 20, 0.0)
    assert rig.stream.status().message == 'vented: emergency stop'
    assert max(rig.valves.highest) == 0.0
    assert rig.stream.emergency_stop()[0]
    rig.stream.disarm()
    rig.fill()


def test_an_emergency_stop_of_a_lost_device_is_not_confirmed(rig: Rig) -> None:
    rig.fill()
    rig.valves.faults.silent = True
    rig.until_told('register')
    is_vented, known = rig.stream.emergency_stop()
    assert not is_vented
    assert 'not confirmed, the device is lost' in known
    assert 'it vents by itself after 0.2 s' in known


def test_an_answer_to_an_earlier_emergency_stop_confirms_nothing(rig: Rig) -> None:
    rig.fill()
    rig.stream.emergency_stop()
    rig.stop_polling()
    rig.stream._process.send_signal(signal.SIGSTOP)
    is_vented, _ = rig.stream.emergency_stop()  # the answer to the first one may still be in the socket
    assert not is_vented


def test_a_ros_process_that_is_killed_is_vented_along_the_ramp(rig: Rig) -> None:
    """Its messages are then unread, so the device process sees a connection reset."""
    rig.fill()
    rig.stop_polling()
    received = rig.stream.status().values['received']
    rig.valves.clear_log()
    rig.until(lambda: rig.valves.writes > 20, FILLED)
    assert rig.stream.status().values['received'] == received  # none was read
    rig.stream._control.close()
    rig.stream._commands.close()
    rig.until(lambda: rig.holds(0.0))
    assert rig.stream._process.wait(PATIENCE_S) == 0
    falls = [max(a - b for a, b in zip(w.before, w.after, strict=True)) for w in rig.valves.applied]
    assert max(falls) <= 2.0 * ROBOT.actuation.pressure_max / ROBOT.safety.vent_time / RATE + 100.0
