"""Judge of the state machines in test_air_path*.py: checks the invariants of the air path.

It records the commands and checks every write that the fake terminal applies. docs/safety.md has the table of the
invariants I1 to I15; each check names its invariant.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from fake_valves import WIRE_S, Applied, World
from hypothesis import currently_in_test_context, event
from hypothesis.stateful import RuleBasedStateMachine, invariant

from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.stream import PressureStream


class AirPathJudge(RuleBasedStateMachine):
    """A stream that drives a fake terminal, with the invariants of its writes."""

    lateness = 0.5  # of the watchdog's time, from the decision to the last check before the kernel
    under_way = 0.0  # [s] after a cycle, until the answer to its last message
    world: World
    limits: PressureLimits
    terminal: Any
    stream: PressureStream
    watchdog: float  # [s]

    def start_state(self) -> None:
        self.cycle = self.limits.cycle
        self.judged = 0  # number of applied writes that were checked
        self.late = 0  # known gap: writes delayed beyond the lease after their last check
        self.commanded_t = self.near_zero_t = -math.inf
        self.disarmed_t = self.armed_t = self.world.boot
        self.armed = self.stopped = False
        self.stopped_t = -math.inf
        self.sequences = [1000, 1_000_000]  # of two publishers
        self.master: int | None = None  # the publisher that is followed
        self.gives_way = False  # the master has declared a hand-over
        self.rivals_t: float | None = None  # start of the time in which two publishers command
        self.closed = False
        self.lying = False

    # ---- invariants ----------------------------------------------------------------------------------------------

    def poll(self) -> Any:
        before, started = len(self.terminal.applied), self.world.boot
        self.stream.poll(lambda: self.world.point('decide'))
        self.world.run_until(self.world.boot + self.under_way)
        self.judge()
        t = self.world.boot
        if t - started < self.cycle * 1.5 and len(self.terminal.applied) > before and self.terminal.listening:
            self.vented_in_time(t)
        return self.stream.status()

    def vented_in_time(self, t: float) -> None:
        """I3 and I6, at the end of a cycle without delays."""
        ramp = self.limits.ramp_time + 4.0 * self.cycle
        followed_t = self.commanded_t if self.rivals_t is None else min(self.commanded_t, self.rivals_t)
        silent = t - followed_t > self.limits.command_timeout + ramp
        disarmed = not self.armed and t - self.disarmed_t > ramp
        if (silent or disarmed or self.stopped) and self.judged_all_on_time(ramp):
            assert not self.filled(), (silent, disarmed, self.terminal.setpoints())

    def judged_all_on_time(self, duration: float) -> bool:
        """Return whether the bridge ran all its cycles in this time; a delayed bridge needs longer for the ramp."""
        t = self.world.boot
        recent = itertools.takewhile(
            lambda a: a.t >= t - duration - self.cycle, reversed(self.terminal.applied)
        )
        times = [a.t for a in recent][::-1]
        gaps = np.diff([t - duration, *times])
        return bool(gaps.size and gaps.max() <= 1.9 * self.cycle)

    @invariant()
    def judge(self) -> None:
        for applied in self.terminal.applied[self.judged :]:
            self.judged += 1
            self.judge_write(applied)
        held = self.terminal.watchdog()
        if held and self.world.boot > self.terminal.contact_t + max(self.watchdog, held):
            assert not self.filled(), 'I4'

    def judge_write(self, applied: Applied) -> None:
        scale = self.terminal.scale
        low, high = self.limits.pressure_min - scale, self.limits.pressure_max + scale
        assert all(low <= p <= high for p in applied.after), 'I5'
        if self.is_exempt(applied):
            self.late += 1
            if currently_in_test_context():
                event('a write delayed beyond the watchdog, after its last check')
            return
        before, after = np.array(applied.before), np.array(applied.after)
        rise = np.maximum(after - np.maximum(before, 0.0), np.minimum(before, 0.0) - after)
        assert rise.max() <= 2.0 * self.limits.slew * self.cycle + scale, ('I1', applied)
        assert applied.is_newest, 'I7'
        rising = (rise > 0.0) & (np.abs(after) > 1.5 * scale)
        if rising.any():
            assert applied.zero_read_t > applied.tripped_t, 'I2: zero was not confirmed'
            assert self.near_zero_t >= applied.zero_read_t - 1e-6, 'I2: no command near zero since'
            assert self.near_zero_t >= self.armed_t - 1e-6, 'I6: no command near zero since it was armed'
            age = applied.t - self.commanded_t
            late = self.lateness * self.watchdog + applied.t - applied.sent_t
            assert age <= self.limits.command_timeout + 2.0 * WIRE_S + late, ('I3', age)
            assert not (self.stopped and applied.sent_t >= self.stopped_t), 'I6'
            over = ((after - np.array(applied.read)) * np.sign(after))[rising]
            assert over.max() <= self.limits.ahead + 1.5 * self.terminal.scale, ('I11', applied)

    def is_exempt(self, applied: Applied) -> bool:
        """Return whether this write is in the known gap: delayed after its last check until the device had vented."""
        return applied.tripped_t >= applied.sent_t or applied.t - applied.sent_t > self.watchdog

    def poll_for(self, duration: float) -> None:
        until = self.world.boot + duration
        while self.world.boot < until:
            self.poll()

    # ---- helpers -------------------------------------------------------------------------------------------------

    def command(
        self,
        pressure: list[float],
        age: float = 0.0,
        publisher: int = 0,
        is_handover: bool = False,
        decided_t: float = math.inf,
        heard_t: float = math.inf,
    ) -> None:
        """Publish a command decided `age` seconds ago by the wall clock, and record what the stream may follow."""
        self.sequences[publisher] += 1
        now_ns = self.world.now_ns()
        stamp_ns, number = now_ns - round(age * 1e9), self.sequences[publisher]
        heard_t = min(heard_t, self.world.boot)
        sent = Command(heard_t, stamp_ns, number, is_handover, b'', tuple(pressure))
        self.stream.command(Command.unpack(sent.pack()))
        if not self.armed:
            return
        self.note_publisher(publisher, is_handover)
        if abs(age) <= self.limits.command_timeout and self.rivals_t is None:
            self.commanded_t = max(self.commanded_t, min(decided_t, self.world.boot - max(age, 0.0)))
            if max(map(abs, pressure), default=math.inf) <= 0.02 * self.limits.largest:
                self.near_zero_t = max(self.near_zero_t, min(heard_t, self.world.boot - max(age, 0.0)))

    def note_publisher(self, publisher: int, is_handover: bool) -> None:
        takes_over = self.gives_way and is_handover
        if self.master not in (None, publisher) and not takes_over and self.rivals_t is None:
            self.rivals_t = self.world.boot
        self.gives_way = is_handover and self.master == publisher
        self.master = publisher

    def refused(self) -> int:
        return int(self.stream.status().values['commands_refused'])

    def forget_publishers(self) -> None:
        self.master, self.gives_way, self.rivals_t = None, False, None

    def filled(self) -> bool:
        return max(map(abs, self.terminal.setpoints())) > self.terminal.scale

    def is_open(self) -> bool:
        """Return whether the stream is healthy and no fault is planned."""
        quiet = not self.planned() and self.terminal.listening
        return quiet and not self.stream.error

    def planned(self) -> float:
        """Return the remaining seconds of planned pauses and delays."""
        queues = [*self.world.pauses.values(), self.terminal.requests.delays, self.terminal.answers.delays]
        return sum(x for queue in queues for x in queue)
