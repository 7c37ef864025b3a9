"""The stamp of a sample is the host time of the measurement, whatever the device's clock shows."""

import random

import pytest

from soft_hw_bridge.link.device_clock import DeviceClock, ticks_to_ns

NS = 1_000_000_000
START_NS = 1_750_000_000 * NS
MIN_DELAY_S = 1e-4


class Device:
    """A device with its own clock behind a network with one-sided delay."""

    def __init__(self, rate_hz=200.0, offset_s=5 * 3600.0, drift_ppm=100.0, mean_delay_s=5e-4, seed=0):
        self.clock = DeviceClock()
        self.t = 0.0
        self.jump_s = 0.0
        self.echoes = False
        self.rate_hz, self.offset_s, self.drift_ppm = rate_hz, offset_s, drift_ppm
        self.mean_delay_s = mean_delay_s
        self.random = random.Random(seed)
        self.samples = 0

    def device_ns(self, t):
        return round((t * (1 + self.drift_ppm * 1e-6) + self.offset_s + self.jump_s) * NS)

    def delay(self):
        return MIN_DELAY_S + self.random.expovariate(1 / self.mean_delay_s)

    def run(self, seconds):
        """Return the stamp errors [ms] over several seconds."""
        errors = []
        for _ in range(round(seconds * self.rate_hz)):
            self.t += 1 / self.rate_hz
            self.samples += 1
            if self.echoes and self.samples % 50 == 0:
                sent, back = self.t - self.delay(), self.t + self.delay()
                self.clock.feed_round_trip(host_ns(sent), self.device_ns(self.t), host_ns(back))
            stamp = self.clock.feed(self.device_ns(self.t), host_ns(self.t + self.delay()))
            errors.append((stamp - host_ns(self.t)) * 1e-6)
        return errors


def host_ns(t):
    return START_NS + round(t * NS)


@pytest.mark.parametrize('drift_ppm', [-100.0, 0.0, 100.0])
@pytest.mark.parametrize('offset_s', [-7 * 3600.0, 0.0, 1.75e9])
@pytest.mark.parametrize('rate_hz', [20.0, 360.0])
def test_stamp_error_is_below_a_millisecond_after_two_seconds(drift_ppm, offset_s, rate_hz):
    device = Device(rate_hz, offset_s, drift_ppm)
    device.run(2)
    assert max(map(abs, device.run(30))) < 0.5
    assert device.clock.drift_ppm == pytest.approx(-drift_ppm, abs=20)


def test_noise_of_several_milliseconds_is_filtered():
    device = Device(mean_delay_s=4e-3)
    device.run(5)
    assert max(map(abs, device.run(30))) < 1


def test_round_trips_remove_the_constant_delay():
    device = Device()
    device.echoes = True
    device.run(10)
    errors = device.run(10)
    assert abs(sum(errors) / len(errors)) < MIN_DELAY_S * 1e3 / 2
    assert device.clock.rtt_s == pytest.approx(2 * MIN_DELAY_S, abs=1e-4)


@pytest.mark.parametrize('jump_s', [-8 * 3600.0, -30.0, -0.3, -0.02, 0.02, 0.3, 30.0, 8 * 3600.0])
def test_jump_is_found_within_a_second(jump_s):
    device = Device()
    device.run(10)
    device.jump_s = jump_s
    within = device.run(1)
    assert max(map(abs, device.run(10))) < 1
    assert device.clock.relocks == 1
    assert max(map(abs, within)) < 1000 * min(1, abs(jump_s)) + 10


def test_host_clock_set_back_is_found_as_well():
    clock = DeviceClock()
    for k in range(1000):
        clock.feed(k * NS // 100, START_NS + k * NS // 100)
    back_ns = START_NS - 3600 * NS
    stamps = [clock.feed(k * NS // 100, back_ns + k * NS // 100) for k in range(1000, 1200)]
    assert stamps[100] == pytest.approx(back_ns + 11 * NS, abs=NS // 1000)


def test_forgotten_map_is_found_with_the_next_packet():
    device = Device()
    device.run(10)
    device.jump_s = -0.3
    device.clock.forget()
    assert max(map(abs, device.run(10))) < 5
    assert device.clock.drift_ppm == pytest.approx(-100, abs=20)


def test_one_damaged_stamp_changes_nothing():
    device = Device()
    device.run(10)
    arrival = host_ns(device.t + 0.001)
    assert device.clock.feed(2**62, arrival) == arrival
    assert max(map(abs, device.run(1))) < 0.5
    assert device.clock.relocks == 0


def test_stamps_are_ordered_and_never_after_arrival():
    clock, rng = DeviceClock(), random.Random(1)
    last = 0
    for k in range(2000):
        arrival = host_ns(k * 0.01 + rng.expovariate(1 / 0.005))
        stamp = clock.feed(k * 10_000_000, arrival)
        assert last <= stamp <= arrival
        last = stamp


def test_sample_taken_before_sending_is_stamped_earlier():
    clock = DeviceClock()
    stamp = clock.feed(5 * NS, START_NS, sample_ns=5 * NS - 4_000_000)
    assert stamp == START_NS - 4_000_000


def test_ticks_are_exact_where_floats_are_not():
    assert ticks_to_ns(2**60, 10_000_000) == 2**60 * 100
