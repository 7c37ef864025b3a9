"""Register maps: valid entries, and one error line for each mistake."""

import pytest

from soft_dynamics.errors import RobotFileError
from soft_hw_bridge.pressure.register_map import load_register_map


def test_mistakes_in_a_map_are_all_listed(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(
        'format: 1\nchannels: 0\nsetpoint: {adress: 3}\nmeasured: {address: 70000}\nscale: fast\n'
    )
    with pytest.raises(RobotFileError) as error:
        load_register_map(path)
    text = str(error.value)
    for problem in (
        'channels: expected',
        'setpoint.adress: unknown key',
        'measured.address',
        'scale: expected',
    ):
        assert problem in text


@pytest.mark.parametrize(
    ('line', 'problem'),
    [
        ('ambient: -101325', 'ambient: expected'),
        ('setpoint: {address: 65530, stride: 2}', 'setpoint: expected registers up to 65535, got 65536'),
        (
            'stop: [{type: write, address: 65530, value: 0, count: 7}]',
            'stop: expected registers up to 65535, got 65536',
        ),
        ('timeout: {address: 65535, words: 2}', 'timeout: expected registers up to 65535, got 65536'),
    ],
)
def test_registers_that_there_are_not_and_vacuum_for_ambient_are_refused(tmp_path, line, problem):
    path = tmp_path / 'mine.yaml'
    good = {'setpoint': '{address: 0}', 'measured': '{address: 100}'}
    key, _, value = line.partition(': ')
    lines = [f'{name}: {what}' for name, what in (good | {key: value}).items()]
    path.write_text('\n'.join(['format: 1', 'channels: 4', 'scale: 100.0', *lines]))
    with pytest.raises(RobotFileError, match=problem):
        load_register_map(path)


def test_unknown_map_names_the_shipped_ones():
    with pytest.raises(FileNotFoundError, match='festo_cpx_ap, festo_mpa_vppm, festo_vtem, generic'):
        load_register_map('festo')


@pytest.mark.parametrize(
    ('line', 'problem'),
    [
        (
            'start: [{type: write, address: 3, value: 500}]',
            'start: may write only 0 .vented. to set points, got 500',
        ),
        ('stop: [{type: write, address: 2, value: 9, stride: 2, count: 3}]', 'stop: may write only 0'),
        ('start: [{type: write, address: 200, value: 0}]', 'start: must not write the watchdog'),
        ('stop: [{type: write, address: 199, value: 0, count: 2}]', 'stop: must not write the watchdog'),
        ('measured: {address: 3}', 'measured: must not share registers with setpoint, got 3 in both'),
        ('timeout: {address: 2}', 'timeout: must not share registers with setpoint, got 2 in both'),
    ],
)
def test_a_map_whose_start_or_stop_touches_what_it_must_not_is_refused(tmp_path, line, problem):
    path = tmp_path / 'mine.yaml'
    good = {'setpoint': '{address: 0}', 'measured': '{address: 100}', 'timeout': '{address: 200}'}
    key, _, value = line.partition(': ')
    lines = [f'{name}: {what}' for name, what in (good | {key: value}).items()]
    path.write_text('\n'.join(['format: 1', 'channels: 4', 'scale: 100.0', *lines]))
    with pytest.raises(RobotFileError, match=problem):
        load_register_map(path)


def test_start_and_stop_may_vent_set_points(tmp_path):
    path = tmp_path / 'mine.yaml'
    vented = '[{type: write, address: 0, value: 0, count: 4}]'
    path.write_text(
        'format: 1\nchannels: 4\nscale: 100.0\nsetpoint: {address: 0}\nmeasured: {address: 100}\n'
        f'start: {vented}\nstop: {vented}\n'
    )
    assert load_register_map(path).stop[0].count == 4
