"""The compiled reference firmware against the codec: which messages it accepts and which it rejects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from firmware import HIGHEST, LOWEST, Firmware, compile_firmware
from fuzz import damaged, fuzz_count

from soft_hw_bridge.pressure.serial_protocol import (
    NO_PRESSURE,
    VALID_S,
    WATCHDOG_S,
    BinaryCodec,
    Message,
    MessageStream,
)

N = 16
SEED, START = 1000, 77
T0 = 5_000_000
WATCHDOG, VALID = round(WATCHDOG_S * 1e6), round(VALID_S * 1e6)
CODEC = BinaryCodec()
FULL = (100_000,) * N


class Node:
    """The firmware, and the host's view of it."""

    def __init__(self, t_us: int = T0) -> None:
        self.t = t_us
        self.firmware = Firmware(N, SEED, t_us)
        self.begin(START)

    def send(self, kind: str, *head: int, values: tuple[int, ...] = ()) -> list[Message]:
        """Send a message; return the answers."""
        data = self.firmware.feed(CODEC.encode(Message(kind, head, values)), self.t)
        return MessageStream(CODEC).feed(data)

    def begin(self, sequence: int) -> Message:
        """Vent; return the answer."""
        (answer,) = self.send('V', sequence)
        self.epoch, self.sequence = answer.head[0], sequence
        return answer

    def set(self, values: tuple[int, ...], **changes: int) -> bool:
        """Send set points that follow from the last answer, with changes; return whether the device took them."""
        fields = {'epoch': self.epoch, 'sequence': self.sequence + 1, 't_us': self.t} | changes
        epoch, sequence, t_us = (number % 2**32 for number in fields.values())
        assert self.send('S', epoch, sequence, t_us, values=values) == []
        (answer,) = self.send('Q', 0)
        assert answer.values[:N] == tuple(self.firmware.valves)
        is_taken = answer.head[3] == sequence and answer.values[:N] == values
        self.sequence += is_taken
        return is_taken


def test_answers_tell_all() -> None:
    node = Node()
    node.firmware.measure([*range(1, N), NO_PRESSURE])
    assert node.begin(5).head == (node.epoch, 5, T0, 5)
    assert node.set(FULL)
    node.t += 1000
    (answer,) = node.send('Q', 42)
    assert answer == Message('P', (node.epoch, 42, T0 + 1000, 6), (*FULL, *range(1, N), NO_PRESSURE))


@pytest.mark.parametrize('t0', [T0, 2**32 - 1000])
def test_silence_vents_and_begins_an_epoch(t0: int) -> None:
    node = Node(t0)
    assert node.set(FULL)
    node.t += WATCHDOG
    (before,) = node.send('Q', 1)
    assert (before.head[0], before.values[:N]) == (node.epoch, FULL)
    node.t += 1
    (after,) = node.send('Q', 2)
    assert (after.head[0], after.values[:N]) == (node.epoch + 1, (0,) * N)
    assert node.firmware.valves == [0] * N


def test_questions_do_not_hold_the_pressure() -> None:
    node = Node()
    node.set(FULL)
    for k in range(5):
        node.t += WATCHDOG // 4
        node.send('Q', k)
    assert not any(node.firmware.valves)


def test_silence_is_seen_before_the_bytes_that_waited_meanwhile() -> None:
    node = Node()
    node.set(FULL)
    node.t += WATCHDOG + 1
    assert not node.set(FULL)  # the program hung, and finds an old message when it resumes
    assert not any(node.firmware.valves)


def test_zero_that_holds_is_vented_too() -> None:
    node = Node()
    node.t += WATCHDOG + 1
    assert not node.set(FULL)


@pytest.mark.parametrize(
    'change',
    [
        {'epoch': SEED},
        {'epoch': 0},
        {'sequence': START},
        {'sequence': START + 1},
        {'sequence': START + 3},
        {'t_us': T0 - VALID - 1},
        {'t_us': T0 + 1},
        {'t_us': T0 + 2**31},
    ],
)
def test_set_points_that_do_not_follow_are_refused(change: dict[str, int]) -> None:
    node = Node()
    assert node.set(FULL)
    assert not node.set((0,) * (N - 1) + (1000,), **change)
    assert node.set(FULL, t_us=T0 - VALID)


@pytest.mark.parametrize('value', [LOWEST - 1, HIGHEST + 1, 2**31 - 1, NO_PRESSURE])
def test_set_points_beyond_the_bounds_are_refused_together(value: int) -> None:
    node = Node()
    assert not node.set((1000,) * (N - 1) + (value,))
    assert node.set((LOWEST,) * (N - 1) + (HIGHEST,))


@pytest.mark.parametrize('count', [0, 1, N - 1, N + 1, 64])
def test_set_points_for_other_channels_are_refused(count: int) -> None:
    assert not Node().set((1000,) * count)


def test_a_vent_that_is_repeated_begins_one_epoch_and_another_one_vents() -> None:
    node = Node()
    epoch = node.epoch
    assert node.begin(START).head[0] == epoch
    assert node.set(FULL)
    assert node.begin(START).head[0] == epoch + 1  # arrived too late
    assert not any(node.firmware.valves)
    assert not node.set(FULL, epoch=epoch)
    assert node.set(FULL)
    assert node.begin(9).head[0] == epoch + 2


def test_a_late_message_is_refused_after_the_next_vent_and_after_reset() -> None:
    node = Node()
    old = node.epoch, node.sequence
    node.begin(START + 1_000_000)
    assert not node.set(FULL, epoch=old[0], sequence=old[1] + 1)
    node.firmware.start(SEED, node.t)  # a poor source of epochs
    assert not node.set(FULL)
    node.begin(4242)
    assert not node.set(FULL, epoch=old[0], sequence=old[1] + 1)
    node.firmware.start(SEED + 10**6, node.t)
    assert node.begin(1).head[0] == SEED + 10**6 + 2


def test_a_failure_vents_and_is_told() -> None:
    node = Node()
    node.set(FULL)
    assert MessageStream(CODEC).feed(node.firmware.fail(7)) == [Message('E', (7,))]
    assert not any(node.firmware.valves)
    assert not node.set(FULL)


def messages(node: Node) -> list[bytes]:
    """Return valid messages of each kind for the current state of the device."""
    head = node.epoch, node.sequence + 1, node.t
    kinds = [Message('S', head, FULL), Message('V', (3,)), Message('Q', (8,)), Message('E', (1,))]
    return [CODEC.encode(message) for message in (*kinds, Message('P', (*head, 1), FULL))]


def test_garbage_changes_nothing_and_the_next_message_is_understood() -> None:
    node = Node()
    good = messages(node)
    for data in damaged([good[0]], fuzz_count(5000, 100_000)):
        node.firmware.feed(data, node.t)
        assert node.firmware.valves in ([0] * N, list(FULL))
    node.firmware.feed(b'\0', node.t)
    assert node.send('Q', 3)[0].head[1] == 3


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Undefined behaviour and out-of-bounds access end the process."""
    sanitize = '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-g'
    program = compile_firmware(tmp_path / 'node', *sanitize)
    node = Node()
    good = messages(node)
    data = b'\0'.join([*good, b'\1' * 5000, b'\xff' * 300, *damaged(good, fuzz_count(20_000, 1_000_000))])
    done = subprocess.run([program], input=data, capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, b'')
    assert MessageStream(CODEC).feed(done.stdout)[0].kind == 'P'


@pytest.mark.parametrize('channels', [1, 63, 64])
def test_frames_of_any_size_are_understood(channels: int) -> None:
    """Byte stuffing treats blocks of 254 bytes and more as a special case."""
    firmware = Firmware(channels)
    for pressure in (0x01010101, 0, 0x00010001):
        firmware.measure([pressure] * channels)
        (vent,) = MessageStream(CODEC).feed(firmware.feed(CODEC.encode(Message('V', (1,))), T0))
        assert vent.values[channels:] == (pressure,) * channels
    values = (0x00010101,) * channels
    firmware.feed(CODEC.encode(Message('S', (vent.head[0], 2, T0), values)), T0)
    (answer,) = MessageStream(CODEC).feed(firmware.feed(CODEC.encode(Message('Q', (9,))), T0))
    assert answer.values[:channels] == values
