"""The counters report what happened to the packets."""

import random

import pytest

from soft_hw_bridge.link.stream_health import StreamHealth


def fed(*sequence, bits=32):
    health = StreamHealth(sequence_bits=bits)
    new = [health.arrived(0.01 * k, number) for k, number in enumerate(sequence)]
    return health, new


def test_packets_in_order_are_all_new():
    health, new = fed(*range(7, 30))
    assert all(new)
    assert (health.received, health.lost, health.duplicate, health.out_of_order) == (23, 0, 0, 0)


def test_gap_is_counted_as_lost():
    health, _ = fed(1, 2, 6, 7)
    assert health.lost == 3


def test_repeated_packet_is_a_duplicate():
    health, new = fed(1, 2, 2, 1, 3)
    assert new == [True, True, False, False, True]
    assert health.duplicate == 2


def test_overtaken_packet_was_not_lost_after_all():
    health, new = fed(1, 3, 2, 4)
    assert new == [True, True, False, True]
    assert (health.lost, health.out_of_order, health.duplicate) == (0, 1, 0)


def test_number_wraps_without_loss():
    health, new = fed(254, 255, 0, 1, bits=8)
    assert all(new)
    assert (health.lost, health.restarts) == (0, 0)


def test_device_that_starts_anew_is_not_a_loss():
    health, new = fed(5000, 5001, 1, 2)
    assert all(new)
    assert (health.lost, health.restarts) == (0, 1)


def test_resync_accepts_any_number():
    health, _ = fed(10, 11)
    health.resync()
    assert health.arrived(1.0, 3)
    assert health.duplicate == 0


def test_counters_agree_with_the_truth_of_a_bad_network():
    rng = random.Random(4)
    sent = list(range(20_000))
    network = [(number + rng.uniform(0, 8), number) for number in sent if rng.random() > 0.1]
    network += [(arrival + rng.uniform(0, 8), number) for arrival, number in network if rng.random() < 0.05]
    arrived = [number for _, number in sorted(network)]
    health, new = fed(*arrived)
    span = max(arrived) - arrived[0] + 1
    distinct = {number for number in arrived if number >= arrived[0]}
    assert health.lost == span - len(distinct)
    assert health.duplicate + health.out_of_order + health.received == len(arrived)
    assert health.received == sum(new)
    assert health.duplicate == len(arrived) - len(distinct)


def test_rate_and_age_follow_the_stream():
    health = StreamHealth()
    assert health.age(0.0) == float('inf')
    for k in range(301):
        health.arrived(10 + k / 100, k)
    assert health.rate(13.0) == pytest.approx(100, rel=0.02)
    assert health.age(13.5) == pytest.approx(0.5)
    assert health.rate(16.0) == 0


def test_frozen_stream_grows_old():
    health = StreamHealth()
    health.arrived(0.0, 8)
    for k in range(1, 500):
        health.arrived(k / 100, 8)
    assert health.age(5.0) == 5.0
    assert health.duplicate == 499


def test_report_names_every_counter():
    counters = {name for name in vars(StreamHealth()) if not name.startswith('_')}
    assert counters < StreamHealth().report(0.0).keys()
