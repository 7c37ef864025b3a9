"""Which samples enter, which sensor leads and when a state is due, by times alone."""

from __future__ import annotations

import pytest

from soft_estimation.scheduler import FUTURE_LIMIT, HOLD_NS, LEAD, Sample, Scheduler

START_NS, MS = 10**18, 1_000_000
LEADERS = ('mocap', 'fiber', 'ft')


def scheduler(rate: float = 100.0, sensor_rate: float = 100.0, at_samples: bool = False) -> Scheduler:
    return Scheduler(rate, sensor_rate, at_samples, LEADERS)


def told(s: Scheduler, stamp_ms: float, name: str = 'mocap', now_ms: float | None = None) -> list[float]:
    """Times [ms] of the samples that are due after one with this stamp."""
    stamp_ns = START_NS + round(stamp_ms * MS)
    now_ns = stamp_ns if now_ms is None else START_NS + round(now_ms * MS)
    return [round(1e3 * ready.t, 6) for ready in s.add(Sample(name, name, stamp_ns, None), now_ns)]


def test_times_count_from_the_clock_at_the_first_sample() -> None:
    s = scheduler()
    (ready,) = s.add(Sample('mocap', 'mocap', START_NS, 'message'), START_NS + 5 * MS)
    assert ready.sample.message == 'message'
    assert (ready.t, ready.now) == (pytest.approx(-0.005), 0.0)
    assert s.seconds(START_NS + 15 * MS) == pytest.approx(0.01)
    assert s.nanoseconds(0.01) == START_NS + 15 * MS


def test_each_sensor_is_thinned_to_its_rate_by_itself() -> None:
    s = scheduler(rate=50.0, sensor_rate=100.0)
    entered = {name: sum(len(told(s, k, name)) for k in range(1000)) for name in ('mocap', 'ft')}
    assert entered['mocap'] == pytest.approx(
        100, abs=12
    )  # plus what the first tenth of a second may catch up on
    assert entered['ft'] == entered['mocap']


def test_a_stamp_ahead_of_the_clock_is_refused_and_changes_nothing() -> None:
    s = scheduler()
    with pytest.raises(ValueError, match=r'stamp is 0\.101 s ahead of the clock'):
        told(s, 1e3 * FUTURE_LIMIT + 1.0, now_ms=0.0)
    assert s.start_ns is None
    assert told(s, 1e3 * FUTURE_LIMIT, now_ms=0.0) == [pytest.approx(1e3 * FUTURE_LIMIT)]


def test_the_best_sensor_that_is_heard_leads() -> None:
    s = scheduler()
    assert s.leads('ft', 0.0)
    assert s.leads('fiber', 0.01)
    assert not s.leads('ft', 0.02)
    assert s.leads('mocap', 0.03)
    assert not s.leads('fiber', 0.04)
    assert s.leading == 'mocap'
    assert not s.leads('fiber', 0.03 + LEAD - 1e-3)
    assert s.leads('fiber', 0.03 + LEAD)  # mocap has fallen silent
    assert s.leads('mocap', 0.2)


def test_a_state_is_due_with_the_leader_at_the_rate_at_most() -> None:
    s = scheduler(rate=100.0)
    due = [s.is_due(0.001 * k) for k in range(1000)]
    assert sum(due) == pytest.approx(100, abs=2)
    assert all(scheduler(at_samples=True).is_due(0.0) for _ in range(10))


def test_a_state_is_overdue_a_while_after_the_last() -> None:
    s = scheduler(rate=100.0)
    assert not s.is_overdue(START_NS)  # no sample has arrived yet
    told(s, 0.0)
    assert s.is_overdue(START_NS)
    s.asked = 0.0
    assert not s.is_overdue(START_NS + 7 * MS)
    assert s.is_overdue(START_NS + 8 * MS)
    assert s.period == pytest.approx(0.015)
    recorded = scheduler(at_samples=True)
    told(recorded, 0.0)
    assert not recorded.is_overdue(START_NS + 1000 * MS)


def test_with_at_samples_all_enter_in_the_order_of_their_stamps_after_the_hold() -> None:
    s, hold = scheduler(rate=1.0, sensor_rate=1.0, at_samples=True), HOLD_NS / MS
    entered = [t for stamp in (0, 2, 1, 3, 3 + hold) for t in told(s, stamp, now_ms=0.0)]
    assert entered == pytest.approx([0.0, 1.0, 2.0, 3.0])


def test_what_starts_over_in_the_middle_of_samples_in_order_counts_from_the_next() -> None:
    s, hold = scheduler(at_samples=True), HOLD_NS / MS
    for stamp in (0.0, 10.0):
        assert told(s, stamp) == []
    in_turn = iter(s.add(Sample('mocap', 'mocap', START_NS + round((10 + hold) * MS), None), START_NS))
    assert next(in_turn).t == 0.0
    s.start_over()
    assert next(in_turn).t == 0.0
    assert s.start_ns == START_NS + 10 * MS


def test_starting_over_forgets_who_led_and_what_was_asked() -> None:
    s = scheduler()
    told(s, 0.0)
    s.leads('mocap', 0.0)
    s.asked = 0.0
    s.start_over()
    assert (s.leading, s.start_ns, s.asked) == ('', None, -float('inf'))
    assert told(s, -500.0) == [0.0]
