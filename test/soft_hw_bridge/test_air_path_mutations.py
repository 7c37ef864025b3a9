"""Mutation test of the air path: the state machine must detect every removed rule (`make test-long`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRESSURE = 'soft_hw_bridge/pressure'

# Each entry: file, text, replacement. If several rules guard one invariant, all of them are removed.
RULES: dict[str, tuple[str, ...]] = {
    'I1 contact lease before a write': (
        'modbus_client.py',
        'self._lease.check()  # just before the kernel takes it',
        'pass',
    ),
    'I1 lease judged at each answer': (
        'contact_lease.py',
        'self.check()\n        self._contact_t',
        'self._contact_t',
    ),
    'I1 set points read back': (
        'modbus_device.py',
        'if self._written is None or (held != self._written).any():',
        'if False:',
    ),
    'I1 catch-up of two cycles': ('guard.py', '_CYCLES_PER_STEP = 2.0', '_CYCLES_PER_STEP = 9.0'),
    'I2 zero after a loss': (
        *('stream.py', "self.error = ''\n            self._guard.lost()", "self.error = ''"),
        *('stream.py', 'self._device.close()\n        self._guard.lost()', 'self._device.close()'),
    ),
    'I2 command near zero': ('guard.py', 'if self._begins_at_zero and not (', 'if False and not ('),
    'I2 near zero since zero was confirmed': (
        'guard.py',
        'is_near_zero and decided_t >= self._zero_t',
        'is_near_zero',
    ),
    'I3 decision held up before its write': (
        'stream.py',
        'self._device.write(self._decide(), self._decided_t)',
        'self._device.write(self._decide())',
    ),
    'I6 commands from before it was armed': (
        'guard.py',
        'self._begin_at_zero()  # earlier commands may still be under way',
        'pass',
    ),
    'I8 another master that insists': ('stream.py', 'self._is_left_alone = True', 'pass'),
    'I11 vacuum not far ahead of the measurement': (
        'guard.py',
        'least = np.minimum(self._measured - self.limits.ahead, 0.0)',
        'least = -math.inf',
    ),
    'I3 command time-out': ('guard.py', '<= t - self._commanded_t <=', '<= 0.0 * t <='),
    'I3 age of a command': ('guard.py', 'if not abs(age) <= self.limits.command_timeout:', 'if False:'),
    'I3 age counts': ('guard.py', 'self._commanded_t = decided_t', 'self._commanded_t = t'),
    'I3 writes of one decision': ('modbus_client.py', 'if self._boot() > until:', 'if False:'),
    'I4 watchdog set': (
        'modbus_device.py',
        'self._connected().write(register.address, self._watchdog_words(register))\n            self._check_watchdog()',
        'pass',
    ),
    'I4 watchdog read again': (
        'modbus_device.py',
        'if self._boot() - self._checked_t >= _CHECK_S:',
        'if False:',
    ),
    'I8 state of the device read again': (
        'modbus_device.py',
        'for step in self._map.start:',
        'for step in ():',
    ),
    'I5 limits of guard and register map': (
        *('register_map.py', 'np.minimum(np.maximum(counts, low), high)', 'np.minimum(counts, 65535)'),
        *('guard.py', 'np.clip(wanted, self.limits.pressure_min, self.limits.pressure_max)', 'wanted'),
        *('guard.py', 'np.clip(moved, self.limits.pressure_min, self.limits.pressure_max)', 'moved'),
    ),
    'I6 disarm vents': ('guard.py', "self._vent('disarmed')", 'pass'),
    'I6 stop vents': ('guard.py', 'self._vent(reason)\n        self.lost()', 'self._vent(reason)'),
    'I7 wait for the watchdog before the next connection': (
        'modbus_device.py',
        'if wait > 0.0 and self._stop.wait(wait):',
        'if False:',
    ),
    'I7 time of the failure': ('modbus_device.py', 'self._failed_t = self._boot()', 'pass'),
    'I10 answers belong to requests': (
        'modbus_client.py',
        'if (transaction, protocol, unit) != (self._transaction, 0, self._unit):',
        'if False:',
    ),
    'I3 wall clock that was set': (
        'stream.py',
        'self._stamps.time_of(command.stamp_ns)',
        'command.heard_t - (self._time.wall_ns() - command.stamp_ns) * 1e-9',
    ),
    'I9 second publisher': ('command_source.py', "self.problem = 'commands from two publishers'", 'pass'),
    'I9 hand-over that both declare': (
        'command_source.py',
        'if self._gives_way and command.is_handover:',
        'if command.is_handover:',
    ),
    'I9 until armed again': (
        'command_source.py',
        'if self.problem:\n',
        'if self.problem and not (self.__init__()):\n',
    ),
    'I10 nothing escapes poll': (
        'stream.py',
        'except DeviceError as error:\n            self._lose(str(error))\n            return []\n'
        '        except Exception as error:',
        'except KeyError as error:',
    ),
    'I11 not far ahead of the measurement': (
        'guard.py',
        'most = np.maximum(self._measured + self.limits.ahead, 0.0)',
        'most = math.inf',
    ),
}

FIRMWARE = 'firmware/pressure_node.c'
IS_OF_EPOCH = 'if (!is_live || get(data) != epoch) return;'
IS_NEXT = 'if (get(data + 4) != sequence + 1) return;'
IS_VALID = 'if (now - get(data + 8) > VALID_US) return;'

SERIAL_RULES: dict[str, tuple[str, ...]] = {
    'I12 answer before zero was seen': (
        'stream.py',
        'self._is_zero_held = not self._output.any()',
        'self._is_zero_held = True',
    ),
    'I1 epoch and validity time in the device': (FIRMWARE, IS_OF_EPOCH, '', FIRMWARE, IS_VALID, ''),
    'I1 sequence in the device': (FIRMWARE, IS_NEXT, ''),
    'I3 validity time in the device': (FIRMWARE, IS_VALID, ''),
    'I4 watchdog of the device': (FIRMWARE, 'if (is_live && node_now_us()', 'if (0 && node_now_us()'),
    'I5 limits of guard and serial port': (
        *(
            'serial_device.py',
            'np.clip(finite, self._limits.pressure_min, self._limits.pressure_max)',
            'finite',
        ),
        *('guard.py', 'np.clip(wanted, self.limits.pressure_min, self.limits.pressure_max)', 'wanted'),
        *('guard.py', 'np.clip(moved, self.limits.pressure_min, self.limits.pressure_max)', 'moved'),
    ),
    'I7 epoch, sequence and validity time in the device': (
        *(FIRMWARE, IS_OF_EPOCH, 'if (!is_live) return;'),
        *(FIRMWARE, IS_NEXT, ''),
        *(FIRMWARE, IS_VALID, ''),
    ),
    'I8 set points read back': (
        *(
            'serial_device.py',
            '(sequence, held) == (self._sequence, self._written)',
            'sequence == self._sequence',
        ),
        *(
            'serial_device.py',
            '(sequence, held) != ((self._sequence - 1) % _NUMBERS, self._before)',
            'sequence != (self._sequence - 1) % _NUMBERS',
        ),
    ),
    'I10 checksum in the device': (
        FIRMWARE,
        'crc16(frame, n - 2) != (frame[n - 2] | frame[n - 1] << 8)',
        'crc16(frame, 0) != 0xFFFF',
    ),
    'contact lease before a write': (
        'serial_device.py',
        'self._lease.check()  # just before the kernel takes it',
        'pass',
    ),
}


@pytest.mark.parametrize('name', RULES)
def test_a_missing_rule_is_found(name: str, tmp_path: Path) -> None:
    run_without(RULES[name], 'test_air_path.py', tmp_path)


@pytest.mark.parametrize('name', SERIAL_RULES)
def test_a_missing_rule_of_the_serial_line_is_found(name: str, tmp_path: Path) -> None:
    run_without(SERIAL_RULES[name], 'test_air_path_serial.py', tmp_path)


def run_without(rules: tuple[str, ...], machine: str, tmp_path: Path) -> None:
    """Remove rules from a copy and check that the state machine fails there."""
    for folder in ('soft_hw_bridge', 'soft_dynamics', 'test'):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copy(ROOT / 'pyproject.toml', tmp_path)
    rest = iter(rules)
    for file, text, instead in zip(rest, rest, rest, strict=True):
        path = tmp_path / PRESSURE / file
        source = path.read_text(encoding='utf-8')
        assert source.count(text) == 1, f'{file} no longer has: {text}'
        path.write_text(source.replace(text, instead), encoding='utf-8')
    env = {k: v for k, v in os.environ.items() if k != 'SOFT_ROBOT_LONG'} | {
        'PYTHONPATH': str(tmp_path),
        'UNTIL_FOUND': '1',
        'AIR_PATH_RUNS': '3000',
    }
    run = [sys.executable, '-m', 'pytest', '-q', '-x', f'test/soft_hw_bridge/{machine}']
    done = subprocess.run(
        run, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 1, f'not found without {rules}: {done.stdout[-2000:]}{done.stderr[-2000:]}'
    # the failure must come from a step of the machine or one of these tests
    steps = 'state.build(', 'test_steps_that_broke', 'is_confirmed_by_what', 'waits_for_a_write'
    assert any(each in done.stdout for each in steps), done.stdout[-2000:]
