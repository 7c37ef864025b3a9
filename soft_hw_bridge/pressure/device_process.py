"""The process that drives the valves. It does not import ROS; `RemoteStream` starts it and talks to it.

Guard, contact lease and device live here, so a stall of the ROS process (a message of 80 MB, the garbage collector, a
full disk) does not stall the valves. Two socket pairs connect the processes.

    control    to this process: ARM, DISARM, STOP, CLOSE; from it: MEASURED, STATUS, STOPPED (the answer to STOP)
    commands   to this process: COMMAND, REFUSED; the sender drops them while this process does not read

When the ROS process ends, this one vents along the ramp, closes the device and ends. When this one ends or is stopped,
the watchdog of the device vents.
"""

from __future__ import annotations

import contextlib
import gc
import math
import pickle
import select
import signal
import socket
import struct
import sys

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.config import PressureConfig, make_stream

ARM, DISARM, STOP, CLOSE = b'A', b'D', b'S', b'X'
MEASURED, STATUS, STOPPED = b'M', b'T', b'E'
COMMAND, REFUSED = b'C', b'R'
LARGEST = 1 << 16  # [bytes] of a packet
STAMP = struct.Struct('<q')  # [ns] of a measurement, before its values
STATUS_PERIOD = 0.1  # [s]
_MOST_COMMANDS = 200  # read per cycle


class DeviceProcess:
    """Runs a stream for the ROS process behind two sockets."""

    def __init__(self, config: PressureConfig, control: socket.socket, commands: socket.socket) -> None:
        self._control, self._commands = control, commands
        control.setblocking(False)
        commands.setblocking(False)
        self._is_ending = False
        self._told_t = -math.inf
        self._stream = make_stream(config, stop=self)

    def run(self) -> None:
        """Drive the valves until the ROS process requests the end, or ends."""
        stream = self._stream
        try:
            while not self._is_ending:
                for measured in stream.poll(self._take):
                    self._send(MEASURED + STAMP.pack(measured.stamp_ns) + measured.pressure.tobytes())
                self._tell()
        finally:
            stream.close()

    def end(self) -> None:
        """Make `run` vent and return."""
        self._is_ending = True

    def wait(self, timeout: float, /) -> bool:
        """Wait like `threading.Event.wait` while the device starts; True as soon as `run` must end."""
        select.select([self._control], [], [], timeout)
        self._hear()
        self._tell()
        return self._is_ending

    def _take(self) -> None:
        """Execute the requests, then pass on the commands."""
        self._hear()
        with contextlib.suppress(BlockingIOError):
            for _ in range(_MOST_COMMANDS):
                data = self._commands.recv(LARGEST)
                if data[:1] == COMMAND:
                    self._stream.command(Command.unpack(data[1:]))
                elif data[:1] == REFUSED:
                    packed, reason = pickle.loads(data[1:])
                    self._stream.refuse(Command.unpack(packed), reason)
                else:
                    return

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while request := self._control.recv(LARGEST):
                self._obey(request)
            self._is_ending = True  # the ROS process is gone

    def _obey(self, request: bytes) -> None:
        if request == ARM:
            self._stream.arm()
        elif request == DISARM:
            self._stream.disarm()
        elif request == STOP:
            self._stream.emergency_stop()
            self._send(STOPPED)
        elif request == CLOSE:
            self._is_ending = True

    def _tell(self) -> None:
        t = boot_time()
        if t - self._told_t >= STATUS_PERIOD:
            self._told_t = t
            level, line, values = self._stream.status()
            self._send(STATUS + pickle.dumps((level, line, dict(values))))

    def _send(self, data: bytes) -> None:
        """Send, unless the ROS process is gone or does not read."""
        with contextlib.suppress(OSError):
            self._control.send(data)


def main() -> None:
    """Serve the ROS process that started this one; the arguments are the two open sockets."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes; the ROS process ends this one in order
    control, commands = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    config = pickle.loads(control.recv(LARGEST))
    process = DeviceProcess(config, control, commands)
    signal.signal(signal.SIGTERM, lambda *_: process.end())
    gc.freeze()
    process.run()


if __name__ == '__main__':
    main()
