"""Damage packets in every way a network or an attacker can."""

from __future__ import annotations

import os
import random
import re
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from soft_hw_bridge.errors import MalformedPacket


def damaged(valid: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield random bytes, and valid packets cut, extended, spliced and overwritten, in equal parts."""
    rng = random.Random(seed)
    extremes = (b'\x00', b'\xff', b'\x7f', b'\x80', b'\x01')
    for i in range(count):
        if i % 5 == 0:
            yield rng.randbytes(rng.randrange(200))
            continue
        packet = bytearray(rng.choice(valid))
        if i % 5 == 1:
            del packet[rng.randrange(len(packet)) :]
        elif i % 5 == 2:
            at = rng.randrange(len(packet))
            packet[at : at + rng.randrange(9)] = rng.choice(extremes) * rng.randrange(9)
        elif i % 5 == 3:
            other = rng.choice(valid)
            packet[rng.randrange(len(packet)) :] = other[rng.randrange(len(other)) :]
        else:
            for _ in range(rng.randint(1, 8)):
                packet[rng.randrange(len(packet))] = rng.randrange(256)
        yield bytes(packet)


def refusals(decode: Callable[[bytes], object], valid: Sequence[bytes]) -> float:
    """Decode damaged packets; return the share that was malformed. Any other exception passes through."""
    refused, count = 0, fuzz_count(2000, 100_000)
    for packet in damaged(valid, count):
        try:
            decode(packet)
        except MalformedPacket:
            refused += 1
    return refused / count


def growth(feed: Callable[[bytes], object], packets: Iterator[bytes], warm_up: int) -> int:
    """Feed all packets; return the bytes that remain allocated after the first `warm_up` packets."""
    for _ in range(warm_up):
        feed(next(packets))
    tracemalloc.start()
    try:
        for packet in packets:
            feed(packet)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def fuzz_count(short: int, long: int) -> int:
    """Return the number of random inputs: `short` in `make test`, `long` in `make test-long`."""
    return long if os.environ.get('SOFT_ROBOT_LONG') else short


NASTY = (
    *(
        '&a',
        '*a',
        '&a [*a]',
        '<<: {a: 1}',
        '!!str',
        '!!python/name:os.system',
        '!',
        '%YAML 1.1\n---',
        '---',
        '...',
    ),
    *(
        '010',
        '0o17',
        '1:30',
        '1_000',
        'yes',
        '1e3',
        '1e999',
        '-1e-999',
        '.inf',
        '.nan',
        '9' * 50,
        '9' * 5000,
        '-1',
    ),
    *(
        '"\\0"',
        '"\\e[31m"',
        '"\\ud800"',
        '../escaped',
        '<script>',
        'ä',
        'a' * 70,
        'a' * 70_000,
        '""',
        '~',
        '{}',
        '[]',
    ),
    *('[' * 40, '{a: ' * 40, '- ' * 40, '? ' * 40, '[' * 20_000, 'x, ' * 20_000),
    *('\t', '\x00', '\x1b', '\u2028', "'", '|'),
)


def spoiled_documents(valid: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield damaged documents: lines repeated, moved or removed, hostile words, and the results of `damaged`."""
    rng, bytewise = random.Random(seed), damaged(valid, count, seed)
    for i in range(count):
        text = rng.choice(valid).decode()
        lines = text.split('\n')
        if i % 5 == 0:
            yield next(bytewise)
            continue
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(lines))
            if i % 5 == 1:
                lines.insert(rng.randrange(len(lines)), lines[at])
            elif i % 5 == 2:
                del lines[at : at + rng.randint(0, 1)]
            elif i % 5 == 3:
                words = lines[at].split(' ')
                words[rng.randrange(len(words))] = rng.choice(NASTY)
                lines[at] = ' '.join(words)
            else:
                start, _, value = lines[at].rpartition(': ')
                numbers = re.sub(r'[\d.]+(e-?\d+)?', lambda _: rng.choice(NASTY), value)
                lines[at] = f'{start}: {rng.choice([numbers, rng.choice(NASTY)])}'
        yield '\n'.join(lines).encode()
