"""The poll schedule keeps its rate, whatever delays the polls."""

import random

import pytest

from soft_hw_bridge.link.poll_schedule import Schedule

RATE = 250.0


def asked(seconds, duration, found=lambda t: True):
    """Return the times of the polls of a computer that needs duration() for each one."""
    t, times = 100.0, []
    schedule = Schedule(RATE, t)
    while t < 100.0 + seconds:
        t = max(t, schedule.due)
        times.append(t)
        t += duration()
        schedule.done(t, found(t))
    return times


def test_cycles_keep_the_rate_and_the_phase():
    times = asked(10.0, lambda: 1e-3)
    assert times == pytest.approx([100.0 + k / RATE for k in range(len(times))])


def test_a_busy_computer_makes_up_for_what_it_missed():
    rng = random.Random(1)
    times = asked(10.0, lambda: 0.1 if rng.random() < 0.005 else 1e-3)
    assert len(times) == pytest.approx(10.0 * RATE, abs=Schedule.LATE_S * RATE)


def test_what_is_long_ago_stays_missed():
    pauses = [2.0]
    times = asked(4.0, lambda: pauses.pop() if pauses else 1e-3)
    assert len(times) == pytest.approx((2.0 + Schedule.LATE_S) * RATE, abs=3)


def test_every_pose_of_a_device_as_fast_as_the_rate_is_found_whatever_its_phase():
    seen = set()

    def is_new(t):
        number = int(t * RATE + 0.37)
        return number not in seen and not seen.add(number)

    asked(10.0, lambda: 1e-4, is_new)
    assert len(seen) == pytest.approx(10.0 * RATE, abs=2)


def test_a_device_that_stands_still_is_not_asked_more_often_than_the_rate():
    times = asked(10.0, lambda: 1e-4, lambda _: False)
    assert len(times) == pytest.approx(10.0 * RATE / (1 + RATE * 1e-4), rel=0.01)
