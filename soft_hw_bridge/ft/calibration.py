"""What one count means: the calibration page of the Net F/T box."""

from __future__ import annotations

import http.client
import math
import re
import urllib.request
from dataclasses import dataclass

from soft_hw_bridge.errors import DeviceError, MalformedPacket

PAGE = '/netftapi2.xml'
MAX_PAGE_BYTES = 1 << 18

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
    rate: float | None  # [1/s] records, as set on the box; None if the page does not tell
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

    Only single tags are looked for: the rest differs between versions of the firmware, and needs no parser.
    """
    text = page.decode('utf-8', 'replace')
    rate = _tag(text, 'comrdtrate')
    return Calibration(
        newton_per_count=_unit(text, 'scfgfu', FORCE_UNITS) / _positive(text, 'cfgcpf'),
        newton_metre_per_count=_unit(text, 'scfgtu', TORQUE_UNITS) / _positive(text, 'cfgcpt'),
        rate=_positive(text, 'comrdtrate') if rate else None,
        product=_tag(text, 'prodname'),
        serial=_tag(text, 'calsn'),
        name=_tag(text, 'cfgnam'),
    )


def fetch_calibration(host: str, port: int = 80, timeout: float = 1.0) -> Calibration:
    """Return the calibration of the box. Raises DeviceError."""
    url = f'http://{host}:{port}{PAGE}'
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the box is on our own wire
        with opener.open(url, timeout=timeout) as response:
            return decode_page(response.read(MAX_PAGE_BYTES))
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, 'reason', error)
        raise DeviceError(f'no calibration from {url}: {reason}') from None
    except MalformedPacket as error:
        raise DeviceError(f'{url}: {error}') from None


def _tag(text: str, name: str) -> str:
    match = re.search(rf'<{name}>\s*([^<]{{0,200}}?)\s*</{name}>', text, re.IGNORECASE)
    return match[1] if match else ''


def _positive(text: str, name: str) -> float:
    value = _tag(text, name)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise MalformedPacket(f'<{name}> must be a number > 0, got {value!r}')
    return number


def _unit(text: str, name: str, units: dict[str, float]) -> float:
    value = _tag(text, name)
    if value not in units:
        raise MalformedPacket(f'<{name}> must be one of {", ".join(units)}, got {value!r}')
    return units[value]
