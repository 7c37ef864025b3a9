"""Samples leave the buffer in the order of their stamps, whatever their order of arrival."""

from __future__ import annotations

import numpy as np
import pytest

from soft_estimation.reorder_buffer import InOrder


def test_the_order_of_arrival_does_not_matter() -> None:
    random = np.random.default_rng(0)
    samples = [(10 * k, name) for k in range(100) for name in 'ab']
    runs = []
    for _ in range(2):
        arrival = sorted(samples, key=lambda sample: sample[0] + random.uniform(0, 40))
        line = InOrder(50, 10_000)
        runs.append([item[:2] for t, name in arrival for item in line.add(t, name, None)])
    assert runs[0] == sorted(runs[0])
    assert runs[0] == runs[1]
    assert len(runs[0]) >= len(samples) - 12


def test_what_is_too_late_comes_out_at_once() -> None:
    line = InOrder(50, 10_000)
    line.add(1000, 'a', 'first')
    assert [item.sample for item in line.add(900, 'a', 'late')] == ['late']


def test_a_leap_is_refused_until_its_source_says_so_twice() -> None:
    line = InOrder(50, 1000)
    line.add(0, 'a', 'first')
    for name in 'ab':
        with pytest.raises(ValueError, match='ahead of all others'):
            line.add(5000, name, 'leapt')
    assert not line.add(20, 'a', 'second')
    with pytest.raises(ValueError, match='ahead of all others'):
        line.add(5010, 'a', 'leapt')
    assert [item.sample for item in line.add(5020, 'a', 'gone on')] == ['first', 'second']


def test_a_leap_to_elsewhere_is_no_confirmation() -> None:
    line = InOrder(50, 1000)
    line.add(0, 'a', None)
    for t in (5000, 9000, 5000):
        with pytest.raises(ValueError, match='ahead of all others'):
            line.add(t, 'a', None)
