"""Which publisher the bridge follows, by GID or by sequence numbers."""

from __future__ import annotations

import pytest

from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.command_source import UNKNOWN, Master

RIVALS = 'commands from two publishers'


def command(
    sequence: int, publisher: bytes = b'', heard_t: float = 0.0, is_handover: bool = False
) -> Command:
    return Command(heard_t, 0, sequence, is_handover, publisher, (0.0,))


def test_a_gid_decides_whatever_the_numbers_are() -> None:
    master = Master()
    assert not master.hear(command(5, b'a'))
    assert not master.hear(command(10**9, b'a'))
    assert master.hear(command(10**9 + 1, b'b')) == RIVALS
    assert master.hear(command(10**9 + 2, b'a')) == RIVALS  # until `forget`
    master.forget()
    assert not master.hear(command(1, b'b'))


@pytest.mark.parametrize('sequence', [5, 4])
def test_an_older_command_of_the_same_publisher_is_refused_alone(sequence: int) -> None:
    master = Master()
    assert not master.hear(command(5, b'a'))
    assert master.hear(command(sequence, b'a')) == 'command is older than the one before'
    assert not master.hear(command(6, b'a'))


@pytest.mark.parametrize(
    ('first', 'second', 'passed', 'is_one'),
    [
        (5, 6, 0.0, True),
        (5, 5, 0.0, False),
        (5, 4, 9.0, False),
        (5, 25, 0.0, True),
        (5, 26, 0.0, False),
        (5, 2025, 1.0, True),
        (5, 2026, 1.0, False),
        (UNKNOWN, UNKNOWN, 0.0, True),
        (UNKNOWN, 0, 0.0, False),
        (0, UNKNOWN, 0.0, False),
    ],
)
def test_without_a_gid_numbers_must_follow(first: int, second: int, passed: float, is_one: bool) -> None:
    master = Master()
    assert not master.hear(command(first))
    assert master.hear(command(second, heard_t=passed)) == ('' if is_one else RIVALS)


@pytest.mark.parametrize('publishers', [(b'', b''), (b'a', b'b')])
@pytest.mark.parametrize('declared', [(True, True), (True, False), (False, True)])
def test_a_hand_over_takes_both(publishers: tuple[bytes, bytes], declared: tuple[bool, bool]) -> None:
    """The second publisher's numbers may be lower than the first one's."""
    master = Master()
    assert not master.hear(command(1000, publishers[0]))
    assert not master.hear(command(1001, publishers[0], is_handover=declared[0]))
    assert master.hear(command(3, publishers[1], is_handover=declared[1])) == (
        '' if all(declared) else RIVALS
    )


def test_a_publisher_that_appeared_during_a_silence_is_another_one_whatever_its_number() -> None:
    master = Master()
    assert not master.hear(command(5))
    successor = command(6, heard_t=0.3)._replace(generation=1)
    assert Command.unpack(successor.pack()) == successor
    assert master.hear(successor) == RIVALS
    master.forget()
    assert not master.hear(successor)
    assert not master.hear(command(7, heard_t=0.31)._replace(generation=1))
