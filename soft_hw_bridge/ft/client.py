"""Connection to a Net F/T box: calibration, stream, bias and automatic recovery."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_hw_bridge.errors import UNREADABLE, DeviceError
from soft_hw_bridge.ft import rdt
from soft_hw_bridge.ft.calibration import Calibration, fetch_calibration
from soft_hw_bridge.ft.status import TABLES, Severity, describe, severity
from soft_hw_bridge.link.backoff import Backoff
from soft_hw_bridge.link.device_clock import DeviceClock
from soft_hw_bridge.link.host_lookup import Host
from soft_hw_bridge.link.stream_health import StreamHealth
from soft_hw_bridge.link.udp_timestamps import receive, stamp_arrivals

_RECEIVE_BUFFER_BYTES = 1 << 20
_MAX_PER_POLL = 200  # datagrams, so that a flood cannot block the reader


@dataclass(frozen=True)
class FtConfig:
    """Address and settings of the box."""

    host: str = field(default='192.168.1.1', metadata={'doc': 'host name or address of the Net F/T box'})
    rdt_port: int = field(default=rdt.PORT, metadata={'doc': 'UDP port of the RDT stream'})
    http_port: int = field(default=80, metadata={'doc': 'TCP port of the calibration page'})
    status_table: str = field(
        default='net_box', metadata={'doc': 'status codes of the device: net_box or axia'}
    )
    stale_after: float = field(
        default=0.2,
        metadata={'doc': 'request the stream again after this time without a record', 'unit': 's'},
    )

    def __post_init__(self) -> None:
        for name in ('rdt_port', 'http_port'):
            if not 0 < getattr(self, name) < 65536:
                raise ValueError(f'{name} must be in 1..65535, got {getattr(self, name)}')
        if self.status_table not in TABLES:
            raise ValueError(f'status_table must be one of {", ".join(TABLES)}, got {self.status_table!r}')
        if not self.stale_after > 0:
            raise ValueError(f'stale_after must be > 0, got {self.stale_after}')


class Sample(NamedTuple):
    """One sample in SI units."""

    stamp_ns: int  # host time
    force: tuple[float, float, float]  # [N]
    torque: tuple[float, float, float]  # [N m]
    status: int


class NetFtClient:
    """New samples of one box, in order. Call `poll` in a loop.

    A box that was switched off and on has lost its client and may use another calibration. After a silence, the client
    requests the stream again and reads the calibration page again. It counts and omits records whose status has an
    error. The box has no clock; its time is the record number divided by the rate on the page.
    """

    ASK_PERIOD_S = 0.25

    def __init__(self, config: FtConfig, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.health = StreamHealth(sequence_bits=32)
        self.clock = DeviceClock()
        self.calibration: Calibration | None = None
        self.device_errors = 0  # records omitted because of their status
        self._config = config
        self._now_ns = now_ns
        self._status_word = 0  # of the last record
        self._last: rdt.Record | None = None
        self._page_error = self._send_error = ''
        self._is_stale = True  # the calibration may have changed
        self._backoff = Backoff()
        self._asked = float('-inf')
        self._host = Host(config.host)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        stamp_arrivals(self._socket)
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def close(self) -> None:
        """End the stream."""
        self._send(rdt.Command.STOP)
        self._socket.close()

    def bias(self) -> None:
        """Tare: let the present load read zero. Raises DeviceError if no samples arrive.

        It requests the stream again, because some boxes stop it.
        """
        if self._problem(time.monotonic()):
            raise DeviceError(self._problem(time.monotonic()))
        self._send(rdt.Command.BIAS)
        self._ask(time.monotonic())

    def poll(self, timeout: float) -> list[Sample]:
        """Return all new samples; wait at most the timeout [s]."""
        t = time.monotonic()
        is_asked_again = self.health.age(t) > self._config.stale_after and t - self._asked > self.ASK_PERIOD_S
        if is_asked_again and self._host.is_known(t):
            self._is_stale = True
            self._ask(t)
        if not self._poll.poll(timeout * 1000):
            return []
        return self._drain(time.monotonic())

    def status(self) -> Status:
        """Return the status. The message changes only with the state; numbers are in the values."""
        t = time.monotonic()
        values = self.health.report(t) | {
            'clock_offset_s': f'{self.clock.offset_s:.6f}',
            'clock_drift_ppm': f'{self.clock.drift_ppm:.1f}',
            'clock_relocks': str(self.clock.relocks),
            'device_status': f'{self._status_word:#010x} {self._description}',
            'device_errors': str(self.device_errors),
        }
        if self.calibration:
            values |= {'product': self.calibration.product, 'calibration': self.calibration.serial}
        if problem := self._problem(t):
            return Status(ERROR, problem, values)
        level = severity(self._status_word, self._config.status_table)
        if level is Severity.OK:
            return Status(OK, 'streaming', values)
        return Status(WARN if level is Severity.WARNING else ERROR, self._description, values)

    @property
    def _description(self) -> str:
        return describe(self._status_word, self._config.status_table)

    def _problem(self, t: float) -> str:
        if self.health.age(t) > self._config.stale_after:
            lost = self._host.error or self._send_error
            return lost or f'no new records from {self._config.host}:{self._config.rdt_port}'
        return self._page_error

    def _drain(self, t: float) -> list[Sample]:
        samples = []
        for _ in range(_MAX_PER_POLL):
            try:
                datagram, sender, receive_ns = receive(self._socket, 2048, self._now_ns)
            except OSError:  # empty
                break
            if sender != (self._host.address, self._config.rdt_port):
                self.health.foreign += 1
                continue
            try:
                for record in rdt.decode_records(datagram):
                    sample = self._accept(record, t, receive_ns)
                    samples += [sample] if sample else []
            except UNREADABLE:
                self.health.malformed += 1
        return samples

    def _accept(self, record: rdt.Record, t: float, receive_ns: int) -> Sample | None:
        if record == self._last:  # a frozen box repeats it
            self.health.duplicate += 1
            return None
        self._last = record
        if not self.health.arrived(t, record.rdt_sequence):
            return None
        calibration = self._current_calibration(t)
        if calibration is None:
            return None
        self._status_word = record.status
        if severity(record.status, self._config.status_table) is Severity.ERROR:
            self.device_errors += 1
            return None
        stamp_ns = receive_ns
        if calibration.rate:
            stamp_ns = self.clock.feed(round(record.rdt_sequence * 1e9 / calibration.rate), receive_ns)
        counts = record.counts
        return Sample(stamp_ns, calibration.force(counts), calibration.torque(counts), record.status)

    def _current_calibration(self, t: float) -> Calibration | None:
        if not self._is_stale:
            return self.calibration
        if not self._backoff.is_due(t):
            return None
        is_first = self.calibration is None
        try:
            self.calibration = fetch_calibration(self._host.address, self._config.http_port)
        except DeviceError as error:
            self._page_error = str(error)
            return None
        self._page_error = ''
        self._is_stale = False
        self._backoff.reset()
        self.health.reconnects += not is_first
        return self.calibration

    def _ask(self, t: float) -> None:
        self._asked = t
        self.health.resync()  # a new stream counts from 1
        self.clock.forget()
        self._send(rdt.Command.START)

    def _send(self, command: rdt.Command) -> None:
        if not self._host.address:
            return
        try:
            self._socket.sendto(rdt.encode_request(command), (self._host.address, self._config.rdt_port))
            self._send_error = ''
        except OSError as error:  # no route to the box now; a later request may succeed
            self._send_error = f'cannot send to {self._config.host}: {error.strerror}'
