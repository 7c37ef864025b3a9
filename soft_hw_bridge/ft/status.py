"""The status word of a record, bit by bit."""

from __future__ import annotations

from enum import IntEnum


class Severity(IntEnum):
    """Whether the numbers of a record are usable; values as in diagnostic_msgs."""

    OK = 0
    WARNING = 1  # usable numbers, but check the sensor
    ERROR = 2


NET_BOX = {
    31: 'error summary',
    30: 'CPU or RAM',
    29: 'digital board',
    28: 'analog board',
    27: 'serial link to the digital board',
    26: 'program memory',
    25: 'halted by configuration',
    24: 'settings',
    23: 'configuration and calibration disagree',
    22: 'network',
    21: 'CAN',
    20: 'RDT',
    19: 'EtherNet/IP',
    18: 'DeviceNet',
    17: 'saturation or A/D failure',
    16: 'monitor condition latched',
    14: 'watchdog',
    13: 'stack',
    12: 'I2C',
    11: 'SPI',
    10: 'analog board watchdog',
    9: 'excitation voltage high',
    8: 'excitation voltage low',
    7: 'artificial ground',
    6: 'supply voltage high',
    5: 'supply voltage low',
    4: 'link data',
    3: 'reference voltage',
    2: 'temperature',
    1: 'HTTP',
}

AXIA = {
    31: 'error summary',
    30: 'force or torque out of range',
    27: 'gage out of range',
    2: 'broken gage',
    1: 'supply voltage',
    0: 'temperature',
}

TABLES = {'net_box': NET_BOX, 'axia': AXIA}

_SUMMARY = 1 << 31
_LATCHED = 1 << 16


def severity(status: int, table: str = 'net_box') -> Severity:
    """Return the severity. A latched monitor condition also sets the summary bit but is only a warning."""
    if status == 0:
        return Severity.OK
    if table == 'net_box' and status & ~_SUMMARY == _LATCHED:
        return Severity.WARNING
    return Severity.ERROR


def describe(status: int, table: str = 'net_box') -> str:
    """Return the meaning of all set bits, 'healthy' if there are none."""
    names = TABLES[table]
    texts = [names.get(bit, f'bit {bit}') for bit in range(31, -1, -1) if status >> bit & 1]
    if len(texts) > 1 and status & _SUMMARY:
        texts = texts[1:]
    return ', '.join(texts) or 'healthy'
