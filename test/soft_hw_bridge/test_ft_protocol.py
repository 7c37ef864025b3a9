"""The Net F/T protocol on hand-written bytes."""

import pytest
from fuzz import refusals
from scipy import constants

from soft_hw_bridge.emulators.netft import encode_record
from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.ft import rdt
from soft_hw_bridge.ft.calibration import FORCE_UNITS, TORQUE_UNITS, decode_page
from soft_hw_bridge.ft.status import Severity, describe, severity

RECORD = bytes.fromhex('00000001 0000002a 80010000 000f4240 fff0bdc0 00000000 7fffffff 80000000 00000001')
PAGE = b"""<?xml version="1.0"?><netft><prodname>Net F/T</prodname>
<cfgcpf>1000000</cfgcpf><cfgcpt>1000</cfgcpt>
<scfgfu>N</scfgfu><scfgtu>Nmm</scfgtu><calsn>FT12345</calsn><comrdtrate>1000</comrdtrate></netft>"""


def test_requests():
    assert rdt.encode_request(rdt.Command.START) == bytes.fromhex('1234 0002 00000000')
    assert rdt.encode_request(rdt.Command.BIAS) == bytes.fromhex('1234 0042 00000000')
    assert rdt.encode_request(rdt.Command.STOP) == bytes.fromhex('1234 0000 00000000')
    assert rdt.encode_request(rdt.Command.START, 5)[-1] == 5


def test_record():
    (record,) = rdt.decode_records(RECORD)
    assert record == (1, 42, 0x80010000, (1_000_000, -1_000_000, 0, 2**31 - 1, -(2**31), 1))
    assert encode_record(*record) == RECORD


def test_buffered_datagram_holds_several_records():
    records = [(i, i, 0, (i,) * 6) for i in range(40)]
    assert rdt.decode_records(b''.join(encode_record(*record) for record in records)) == records


@pytest.mark.parametrize('size', [0, 1, 35, 37, 36 * 41])
def test_other_sizes_are_refused(size):
    with pytest.raises(MalformedPacket, match=f'of {size} bytes'):
        rdt.decode_records(bytes(size))


def test_calibration_of_the_common_combination():
    calibration = decode_page(PAGE)
    assert calibration.force((1_000_000, -500_000, 0, 0, 0, 0)) == pytest.approx((1.0, -0.5, 0.0))
    assert calibration.torque((0, 0, 0, 1000, 250, 0)) == pytest.approx((1e-3, 0.25e-3, 0.0))
    assert (calibration.rate, calibration.serial) == (1000.0, 'FT12345')


def test_units_are_those_of_the_tables():
    assert FORCE_UNITS['lbf'] == constants.lbf
    assert FORCE_UNITS['klbf'] == pytest.approx(1000 * constants.lbf)
    assert FORCE_UNITS['kgf'] == constants.kgf
    assert TORQUE_UNITS['lbf-in'] == pytest.approx(constants.lbf * constants.inch)
    assert TORQUE_UNITS['lbf-ft'] == pytest.approx(constants.lbf * constants.foot)
    assert TORQUE_UNITS['kgf-cm'] == pytest.approx(constants.kgf / 100)


@pytest.mark.parametrize(
    ('old', 'new', 'problem'),
    [
        (b'<cfgcpf>1000000<', b'<cfgcpf>0<', 'cfgcpf'),
        (b'<cfgcpt>1000<', b'<cfgcpt>nan<', 'cfgcpt'),
        (b'<cfgcpt>1000</cfgcpt>', b'', r"cfgcpt> must be 0.001 to 1e\+12, got ''"),
        (b'>Nmm<', b'>pounds<', r"scfgtu> must be one of .*got 'pounds'"),
        (b'>N<', b'><', 'scfgfu'),
        (b'>1000</comrdtrate>', b'>fast</comrdtrate>', 'comrdtrate'),
    ],
)
def test_page_without_a_usable_calibration_is_refused(old, new, problem):
    assert old in PAGE
    with pytest.raises(MalformedPacket, match=problem):
        decode_page(PAGE.replace(old, new))


def test_status_words():
    assert (severity(0), describe(0)) == (Severity.OK, 'healthy')
    assert (severity(0x80010000), describe(0x80010000)) == (Severity.WARNING, 'monitor condition latched')
    assert (severity(0x80020000), describe(0x80020000)) == (Severity.ERROR, 'saturation or A/D failure')
    assert severity(0x80030000) is Severity.ERROR
    assert describe(0x80030002) == 'saturation or A/D failure, monitor condition latched, HTTP'
    assert describe(0x80000000) == 'error summary'
    assert describe(0x00008000) == 'bit 15'


def test_axia_has_its_own_table():
    assert describe(0x80000004, 'axia') == 'broken gage'
    assert severity(0x80010000, 'axia') is Severity.ERROR


@pytest.mark.parametrize(
    ('decode', 'valid'), [(rdt.decode_records, [RECORD, 2 * RECORD]), (decode_page, [PAGE])]
)
def test_decoders_raise_one_error_only(decode, valid):
    assert 0.3 < refusals(decode, valid) < 1.0
