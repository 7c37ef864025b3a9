"""CPU time of the estimators: samples of the virtual honeycomb arm and a state every 5 ms."""

from __future__ import annotations

from benchmarks.estimation_rig import Packet, estimates, feed, model, record
from benchmarks.measure import Case, Settings, take_turns
from benchmarks.table import Figure, Row, Target
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.kalman.model_filter import ModelFilter

SECONDS = 0.5  # of a run
CYCLE = 1e-3  # [s] limit within the 5 ms between two states
SENSORS = {
    'motion capture and pressure': {'mocap', 'pressure'},
    'all sensors': {'mocap', 'vive', 'fiber', 'ft', 'pressure'},
}


def cycle(settings: Settings) -> list[Row]:
    """Per state at 200 Hz, with all samples in between, late ones included."""
    robot, run = model(), record(SECONDS, 0)

    def filtered(kinds: set[str]) -> None:
        estimates(run, ModelFilter(robot), kinds)

    def differentiated() -> None:
        estimates(run, PoseDifferentiator(robot), {'mocap'})

    count = len(run.t)
    cases = [Case(filtered, (kinds,), count) for kinds in SENSORS.values()]
    *times, plain = take_turns([*cases, Case(differentiated, (), count)], settings.repetitions)
    rows = [
        Row(
            'estimation.cycle',
            f'5 ms of the model-based filter, {name}',
            Figure.of(samples, 's'),
            target=target,
        )
        for name, samples, target in zip(SENSORS, times, (Target(CYCLE, 's'), None), strict=True)
    ]
    what = '5 ms of the differentiator, motion capture'
    return [*rows, Row('estimation.cycle', what, Figure.of(plain, 's'))]


def update(settings: Settings) -> list[Row]:
    """One sample of each kind at the time of the state, so without prediction."""
    robot, run = model(), record(0.1, 0)
    rows = []
    for kind, what in (('mocap', '5 plates'), ('fiber', 'a fiber of 825 points'), ('ft', 'a base wrench')):
        estimator = ModelFilter(robot)
        for packet in run.packets:
            if packet.kind in (kind, 'mocap', 'pressure'):
                feed(estimator, packet)
        last = [packet for packet in run.packets if packet.kind == kind][-1]
        now = last._replace(t=estimator.belief().t)

        def once(estimator: ModelFilter = estimator, packet: Packet = now) -> None:
            feed(estimator, packet)
            estimator.belief()  # the filter works on demand

        samples = take_turns([Case(once)], settings.repetitions)[0]
        rows.append(Row('estimation.update', f'update with {what}, 24 states', Figure.of(samples, 's')))
    return rows
