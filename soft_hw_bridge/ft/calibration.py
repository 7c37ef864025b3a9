"""Calibration page of the Net F/T box: force and torque per count."""

from __future__ import annotations

import http.client
import math
import socket
import time
from dataclasses import dataclass
from typing import Any

from soft_dynamics.errors import one_line
from soft_hw_bridge.errors import UNREADABLE, DeviceError, MalformedPacket

PAGE = '/netftapi2.xml'
MAX_PAGE_BYTES = 1 << 16  # the page of a box has 3 kB
_LONGEST_VALUE = 200  # characters between an opening and a closing tag
_COUNTS = 1e-3, 1e12  # plausible counts per unit of force or torque; boxes have 1 to 1e7
_RATES = 1.0, 1e5  # plausible records per second; boxes have 1 to 7000

_INCH, _FOOT, _POUND, _KILOGRAM = 0.0254, 0.3048, 4.4482216152605, 9.80665  # [m, m, N, N]
FORCE_UNITS = {'lbf': _POUND, 'N': 1.0, 'klbf': 1e3 * _POUND, 'kN': 1e3, 'kgf': _KILOGRAM}  # [N]
TORQUE_UNITS = {  # [N m]
    'lbf-in': _POUND * _INCH,
    'lbf-ft': _POUND * _FOOT,
    'N-m': 1.0,
    'Nm': 1.0,
    'N-mm': 1e-3,
    'Nmm': 1e-3,
    'kgf-cm': _KILOGRAM * 1e-2,
    'kN-m': 1e3,
    'kNm': 1e3,
}


@dataclass(frozen=True)
class Calibration:
    """The active configuration of the box."""

    newton_per_count: float
    newton_metre_per_count: float
    rate: float | None  # [1/s] records, as set on the box; None if the page does not contain it
    product: str = ''
    serial: str = ''
    name: str = ''

    def force(self, counts: tuple[int, ...]) -> tuple[float, float, float]:
        """Return Fx, Fy, Fz [N]."""
        k = self.newton_per_count
        return k * counts[0], k * counts[1], k * counts[2]

    def torque(self, counts: tuple[int, ...]) -> tuple[float, float, float]:
        """Return Tx, Ty, Tz [N m]."""
        k = self.newton_metre_per_count
        return k * counts[3], k * counts[4], k * counts[5]


def decode_page(page: bytes) -> Calibration:
    """Return the calibration from the text of the page.

    It reads single tags only, because the rest of the page differs between firmware versions.
    """
    if len(page) > MAX_PAGE_BYTES:
        raise MalformedPacket(f'calibration page has more than {MAX_PAGE_BYTES} bytes')
    return Calibration(
        newton_per_count=_unit(page, 'scfgfu', FORCE_UNITS) / _number(page, 'cfgcpf', *_COUNTS),
        newton_metre_per_count=_unit(page, 'scfgtu', TORQUE_UNITS) / _number(page, 'cfgcpt', *_COUNTS),
        rate=_number(page, 'comrdtrate', *_RATES) if _tag(page, 'comrdtrate') else None,
        product=_tag(page, 'prodname'),
        serial=_tag(page, 'calsn'),
        name=_tag(page, 'cfgnam'),
    )


def fetch_calibration(address: str, port: int = 80, timeout: float = 1.0) -> Calibration:
    """Return the calibration of the box. Raises DeviceError, after the timeout [s] at most.

    The timeout applies to the whole page, so a box that sends single bytes cannot block the reader.
    """
    url = f'http://{address}:{port}{PAGE}'
    connection = http.client.HTTPConnection(address, port)
    try:
        connection.sock = _BoundedSocket(address, port, timeout)
        connection.request('GET', PAGE, headers={'Connection': 'close'})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise OSError(f'HTTP status {response.status} {one_line(response.reason, 60)}')
        return decode_page(response.read(MAX_PAGE_BYTES + 1))
    except MalformedPacket as error:
        raise DeviceError(f'{url}: {error}') from None
    except (OSError, http.client.HTTPException, *UNREADABLE) as error:
        raise DeviceError(f'no calibration from {url}: {one_line(str(error), 100)}') from None
    finally:
        connection.close()


class _BoundedSocket(socket.socket):
    """A connection with a limit on total time and total bytes."""

    def __init__(self, address: str, port: int, timeout: float) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._deadline, self._left = time.monotonic() + timeout, 2 * MAX_PAGE_BYTES
        self.settimeout(timeout)
        try:
            self.connect((address, port))
        except OSError:
            self.close()
            raise

    def recv_into(self, *args: Any) -> int:
        """Receive as a socket does; OSError beyond the limits."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0.0:
            raise TimeoutError('timed out')
        if self._left <= 0:
            raise OSError('the page is too long')
        self.settimeout(remaining)
        received = super().recv_into(*args)
        self._left -= received
        return received


def _tag(page: bytes, name: str) -> str:
    """Return the text of the first such tag, '' if it is absent or too long. Takes linear time."""
    opening, closing, folded = f'<{name}>'.encode(), f'</{name}>'.encode(), page.lower()
    start = folded.find(opening) + len(opening)
    end = folded.find(closing, start)
    if start < len(opening) or not 0 <= end - start <= _LONGEST_VALUE:
        return ''
    return one_line(page[start:end].decode('utf-8', 'replace'), _LONGEST_VALUE)


def _number(page: bytes, name: str, least: float, most: float) -> float:
    value = _tag(page, name)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise MalformedPacket(f'<{name}> must be {least:g} to {most:g}, got {value!r}')
    return number


def _unit(page: bytes, name: str, units: dict[str, float]) -> float:
    value = _tag(page, name)
    if value not in units:
        raise MalformedPacket(f'<{name}> must be one of {", ".join(units)}, got {value!r}')
    return units[value]
