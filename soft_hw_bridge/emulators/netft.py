"""Emulated ATI Net F/T box: RDT over UDP and the calibration page over HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import Struct

from soft_hw_bridge.emulators.faults import Faults

_RECORD = Struct('>3I6i')


def encode_record(rdt_sequence: int, ft_sequence: int, status: int, counts: Sequence[int]) -> bytes:
    """Return one record; counts beyond 32 bits saturate."""
    wrapped = [value % 2**32 for value in (rdt_sequence, ft_sequence, status)]
    return _RECORD.pack(*wrapped, *[min(max(value, -(2**31)), 2**31 - 1) for value in counts])


class NetFtEmulator:
    """Answers requests, and sends a record for each given sample while a client listens.

    force_unit and torque_unit: unit names of the box, and their values in N and N m.
    """

    def __init__(
        self,
        rate_hz: float = 1000.0,
        force_unit: tuple[str, float] = ('N', 1.0),
        torque_unit: tuple[str, float] = ('Nmm', 1e-3),
        counts_per_force: int = 1_000_000,
        counts_per_torque: int = 1_000,
        rdt_port: int = 0,
        http_port: int = 0,
    ) -> None:
        self.faults = Faults()
        self.status = 0
        self.rate_hz = rate_hz
        self.force_unit, self.torque_unit = force_unit, torque_unit
        self.counts_per_force, self.counts_per_torque = counts_per_force, counts_per_torque
        self._lock = threading.Lock()
        self._client: tuple[str, int] | None = None
        self._remaining: int | None = None
        self._rdt_sequence = self._ft_sequence = 0
        self._force: Sequence[float] = (0.0,) * 3  # [N] of the last sample
        self._torque: Sequence[float] = (0.0,) * 3  # [N m]
        self._bias = [0] * 6
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(('127.0.0.1', rdt_port))
        self._socket.settimeout(0.1)
        self.rdt_port: int = self._socket.getsockname()[1]
        self._http = ThreadingHTTPServer(('127.0.0.1', http_port), self._page_handler())
        self.http_port: int = self._http.server_address[1]
        self._running = True
        self._threads = [
            threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._serve_requests, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, force: Sequence[float], torque: Sequence[float]) -> None:
        """Record a sample of force [N] and torque [N m], and send it if a client has requested the stream."""
        with self._lock:
            if self.faults.restart:
                self.faults.restart = False
                self._client, self._rdt_sequence, self._ft_sequence = None, 0, 0
                self._bias = [0] * 6
            self._force, self._torque = force, torque
            self._ft_sequence += 1
            client = self._client
            if client is None:
                return
            self._rdt_sequence += 1
            counts = [load - bias for load, bias in zip(self._load(), self._bias, strict=True)]
            packet = encode_record(self._rdt_sequence, self._ft_sequence, self.status, counts)
            self._count_down()
        for data in self.faults.apply(packet):
            with contextlib.suppress(OSError):
                self._socket.sendto(data, client)

    @property
    def taken(self) -> int:
        """Number of samples so far, as the box counts them."""
        return self._ft_sequence

    def skip(self, count: int) -> None:
        """Skip sequence numbers: the box went on sampling while its records were lost."""
        with self._lock:
            self._ft_sequence += count
            self._rdt_sequence += count

    def jump_to(self, rdt_sequence: int) -> None:
        """Set the number of the next record."""
        self._rdt_sequence = rdt_sequence - 1

    def close(self) -> None:
        """Stop serving."""
        self._running = False
        self._http.shutdown()
        self._http.server_close()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _load(self) -> list[int]:
        """Return the last sample in counts, without bias."""
        k_force = self.counts_per_force / self.force_unit[1]
        k_torque = self.counts_per_torque / self.torque_unit[1]
        return [round(k_force * x) for x in self._force] + [round(k_torque * x) for x in self._torque]

    def _count_down(self) -> None:
        if self._remaining is not None:
            self._remaining -= 1
            if self._remaining <= 0:
                self._client = None

    def _serve_requests(self) -> None:
        while self._running:
            try:
                request, sender = self._socket.recvfrom(64)
            except (TimeoutError, ConnectionError):
                continue
            if len(request) >= 8 and request[:2] == b'\x12\x34':
                with self._lock:
                    self._obey(request[2] << 8 | request[3], int.from_bytes(request[4:8], 'big'), sender)

    def _obey(self, command: int, count: int, sender: tuple[str, int]) -> None:
        if command == 0:
            self._client = None
        elif command in (2, 3, 4):
            self._client, self._rdt_sequence, self._remaining = sender, 0, count or None
        elif command == 0x41:
            self.status &= 0x7FFEFFFF
        elif command == 0x42:
            self._bias = self._load()

    def _page(self) -> bytes:
        tags = {
            'prodname': 'Net F/T (emulated)',
            'setbias': '0;0;0;0;0;0',
            'cfgnam': 'emulated calibration',
            'calsn': 'FT00000',
            'scfgfu': self.force_unit[0],
            'scfgtu': self.torque_unit[0],
            'cfgcpf': self.counts_per_force,
            'cfgcpt': self.counts_per_torque,
            'comrdte': 'Enabled',
            'comrdtrate': f'{self.rate_hz:g}',
            'comrdtbsiz': 1,
        }
        body = ''.join(f'<{name}>{value}</{name}>\n' for name, value in tags.items())
        return f'<?xml version="1.0"?>\n<netft>\n{body}</netft>\n'.encode()

    def _page_handler(self) -> type[BaseHTTPRequestHandler]:
        page = self._page

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.partition('?')[0] == '/netftapi2.xml'
                body = page() if found else b'no such page'
                self.send_response(200 if found else 404)
                self.send_header('Content-Type', 'text/xml')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler
