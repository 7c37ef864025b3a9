"""Each fault changes the packets as its name says, and ends when it is cleared."""

import pytest

from soft_hw_bridge.emulators.faults import Faults

PACKETS = [bytes([k]) * 20 for k in range(100)]


def through(faults):
    return [sent for packet in PACKETS for sent in faults.apply(packet)]


def test_healthy_device_sends_every_packet_once():
    assert through(Faults()) == PACKETS


def test_silent_device_sends_nothing():
    assert through(Faults(silent=True)) == []


def test_frozen_device_repeats_its_last_packet():
    faults = Faults()
    faults.apply(b'last')
    faults.frozen = True
    assert through(faults) == [b'last'] * 100


def test_dropped_packets_are_missing_and_the_rest_is_in_order():
    sent = through(Faults(drop=0.5))
    assert 20 < len(sent) < 80
    assert sent == sorted(sent)


def test_duplicated_packets_follow_themselves():
    assert through(Faults(duplicate=1.0)) == [packet for packet in PACKETS for _ in range(2)]


def test_reordered_packets_change_places_and_none_is_missing():
    sent = through(Faults(reorder=1.0))
    assert sent[:4] == [PACKETS[1], PACKETS[0], PACKETS[3], PACKETS[2]]
    assert sorted(sent) == PACKETS


def test_corrupted_packets_differ():
    sent = through(Faults(corrupt=1.0))
    assert len(sent) == 100
    assert sum(a != b for a, b in zip(sent, PACKETS, strict=True)) > 95


def test_cleared_faults_are_gone():
    faults = Faults(silent=True, drop=1.0, clock_jump_s=5.0, untracked=frozenset({'tip'}))
    faults.clear()
    assert faults == Faults()
    assert through(faults) == PACKETS


def test_unknown_fault_is_refused():
    with pytest.raises(AttributeError, match='explode'):
        Faults().explode = True
