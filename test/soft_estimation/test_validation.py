"""validate: it confirms a right model, measures the error of a wrong one, and reports both in its exit code."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from soft_dynamics.errors import NotConverged
from soft_dynamics.robot import Robot, load
from soft_estimation.commands import validate as validate_command
from soft_estimation.commands.progress_bar import ProgressBar
from soft_estimation.commands.validate import main, thresholds
from soft_estimation.recordings.recording import Recording
from soft_estimation.validation.figures import POINTS, envelope
from soft_estimation.validation.free_run import statistics, validate
from soft_estimation.validation.report import html_report, text_report
from tools.made_bag import Rig, driven, write_bag

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
RATES = dict.fromkeys(('state', 'pressure', 'wrench'), 100.0)


@pytest.fixture(scope='module')
def arm() -> Robot:
    return load('honeycomb_arm')


@pytest.fixture(scope='module')
def stiffer(arm: Robot) -> Robot:
    def changed(segment: object) -> object:
        stiffness = tuple(1.2 * k for k in segment.material.stiffness)
        return dataclasses.replace(
            segment, material=dataclasses.replace(segment.material, stiffness=stiffness)
        )

    d = arm.description
    return Robot(dataclasses.replace(d, segments=tuple(changed(segment) for segment in d.segments)))


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory, arm: Robot) -> Path:
    path = tmp_path_factory.mktemp('bags') / 'run'
    return write_bag(path, Rig(arm, driven(arm, 3.0)), ['state', 'pressure', 'wrench'], RATES)


def recorded(robot: Robot, seconds: float = 3.0) -> Recording:
    motion = driven(robot, seconds)
    qdd = robot.forward_dynamics(
        motion.q, motion.qd, np.einsum('kij,kj->ki', robot.actuation(motion.q), motion.inputs)
    )
    wrench_B = robot.base_wrench(motion.q, motion.qd, qdd)
    return Recording(robot.name, motion.t, motion.q, motion.qd, qdd, motion.inputs, wrench_B)


def test_the_model_that_made_a_recording_has_no_error(arm: Robot) -> None:
    found = validate(arm, recorded(arm))
    assert found.free.total('rad').max < 1e-9
    assert found.ahead.total('rad').max < 1e-6
    assert max(row.mse for row in found.forces) < 1e-16
    assert len(found.forces) == 6 + arm.nq
    assert found.real_time_factor > 0.0


def test_a_wrong_model_is_off_by_the_difference_of_the_motions(arm: Robot, stiffer: Robot) -> None:
    truth, model = driven(stiffer, 3.0), driven(arm, 3.0)
    found = validate(arm, recorded(stiffer))
    error = np.abs(model.q - truth.q)
    for k, row in enumerate(found.free.table[: arm.nq]):
        assert row.name == arm.coordinate_names[k]
        assert (row.mean, row.median, row.max) == pytest.approx(
            (error[:, k].mean(), np.median(error[:, k]), error[:, k].max()), rel=1e-6
        )
    assert found.free.total('rad').mean == pytest.approx(error.mean(), rel=1e-6)
    assert 1e-4 < found.ahead.total('rad').mean < found.free.total('rad').mean
    driving = [row for row in found.forces if row.name.startswith('tau')]
    k = arm.coordinate_names.index(driving[0].name.removeprefix('tau '))
    spring = 0.2 * arm.elastic(truth.q)[:, k]
    assert driving[0].mse == pytest.approx(np.mean(spring**2), rel=1e-3)
    assert driving[0].best <= driving[0].mse <= driving[0].worst


def test_ahead_is_the_prediction_from_each_measured_state(arm: Robot, stiffer: Robot) -> None:
    recording = recorded(stiffer)
    found = validate(arm, recording, horizon=0.2)
    assert found.ahead.t[0] == pytest.approx(0.2)
    k = 57
    part = slice(k, k + 21)
    alone = arm.simulate(recording.q[k], recording.qd[k], recording.pressure[part], recording.t[part])
    np.testing.assert_allclose(found.ahead.q[k], alone.q[-1], atol=1e-12)


def test_chambers_that_lag_behind_their_sensors_lag_in_every_run(arm: Robot) -> None:
    d = arm.description
    drive = dataclasses.replace(d.actuation, fill_lag=0.1, vent_lag=0.2)
    slow = Robot(dataclasses.replace(d, actuation=drive))
    motion = driven(slow, 3.0)
    pressure = driven(arm, 3.0).inputs  # at the sensors
    found = validate(slow, Recording(slow.name, motion.t, motion.q, motion.qd, 0.0 * motion.q, pressure))
    assert found.free.total('rad').max < 1e-3  # of straight lines between samples
    assert found.ahead.total('rad').max < 1e-3


def test_gaps_do_not_count(arm: Robot) -> None:
    recording = recorded(arm)
    seen = np.ones(recording.t.size, bool)
    seen[100:150] = False
    q = recording.q.copy()
    q[100:150] += 1.0
    found = validate(arm, dataclasses.replace(recording, q=q, seen=seen))
    assert found.free.total('rad').max < 1e-9
    assert found.ahead.total('rad').max < 1e-6


def test_a_base_that_is_moved_is_moved_in_the_model_and_is_no_error() -> None:
    robot = load('floating_actuator')
    t = np.arange(101) / 100.0
    q, qd = np.zeros((t.size, robot.nq)), np.zeros((t.size, robot.nq))
    q[:, 0], qd[:, 0] = 0.01 * np.sin(6.0 * t), 0.06 * np.cos(6.0 * t)
    found = validate(robot, Recording(robot.name, t, q, qd, 0.0 * q, np.zeros((t.size, 3))))
    np.testing.assert_array_equal(found.free.q[:, :6], q[:, :6])
    assert [row.name for row in found.free.table] == ['actuator_dx', 'actuator_dy', 'actuator_dl', 'total']
    assert found.free.total('m').unit == 'm'


def test_a_run_that_cannot_go_on_says_where_and_fails(
    arm: Robot, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, simulate = recorded(arm), Robot.simulate

    def limited(
        self: Robot, q0: object, qd0: object, inputs: object, t: np.ndarray, **options: object
    ) -> object:
        if t[-1] > 1.005:
            raise NotConverged(1.0, None, 'too fast')
        return simulate(self, q0, qd0, inputs, t, **options)

    monkeypatch.setattr(Robot, 'simulate', limited)
    found = validate(arm, recording)
    assert found.free.t[-1] == pytest.approx(0.99)
    assert found.free.stopped == 'simulation stopped at t = 1 s: too fast'
    monkeypatch.chdir(tmp_path)
    assert main([str(run), 'honeycomb_arm', '--threshold', '1rad']) == 1
    assert 'failed: free run: simulation stopped at t = 1 s: too fast' in capsys.readouterr().out


def test_statistics_of_numbers_one_can_check() -> None:
    rows = statistics({'a_u': 'rad', 'a_h': 'm'}, [[1.0, -0.1], [-3.0, 0.3], [2.0, 0.2], [2.0, 0.2]])
    assert [(row.name, row.unit) for row in rows] == [
        ('a_u', 'rad'),
        ('a_h', 'm'),
        ('total', 'rad'),
        ('total', 'm'),
    ]
    assert rows[0][2:5] == (2.0, 2.0, 3.0)
    assert rows[0].rmse == pytest.approx(np.sqrt(18.0 / 4.0))
    assert rows[3].median == pytest.approx(0.2)
    assert statistics({'a_u': 'rad'}, np.zeros((0, 1)))[0].mean == np.inf


@pytest.mark.parametrize(
    'name', ['bending_actuator', 'fabric_arm', 'floating_actuator', 'honeycomb_arm', 'pneumatic_arm']
)
def test_every_coordinate_has_its_unit(name: str) -> None:
    robot = load(name)
    units = dict(zip(robot.coordinate_names, robot.coordinate_units, strict=True))
    lengths = [c for c, unit in units.items() if unit == 'm']
    base = ['base_x', 'base_y', 'base_z', 'actuator_dx', 'actuator_dy', 'actuator_dl']
    assert lengths == (base if name == 'floating_actuator' else [])


def test_recordings_that_do_not_fit(arm: Robot) -> None:
    recording = recorded(arm, 0.5)
    with pytest.raises(
        ValueError, match='expected 6 coordinates and 12 chambers of pneumatic_arm, got 8 and 16'
    ):
        validate(load('pneumatic_arm'), recording)
    with pytest.raises(ValueError, match=r'horizon: expected from 0.01 s, one sample, to less than 0.5 s'):
        validate(arm, recording, horizon=0.5)


# ---- report ----------------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_beside_it_and_names_everything(arm: Robot, stiffer: Robot) -> None:
    found = validate(arm, recorded(stiffer))
    page = html_report(arm, found, '<run>', (False, '0.02 > 0.01'))
    assert not re.search(r'<(script|link|img|iframe)\b|@import|url\(\s*[\'"]?http', page)
    assert page.count('<svg') == 4
    assert 'class="verdict fail">failed' in page
    assert '&lt;run&gt;' in page
    assert '<run>' not in page
    for name in (*arm.coordinate_names, 'f_z', 'm_x', 'x</b><span>real time'):
        assert name in page
    text = text_report(arm, found)
    total = found.free.total('rad')
    assert re.search(rf'total +{total.mean:.3g} +{total.median:.3g} +{total.max:.3g}', text)


def test_without_base_sensor_there_is_no_wrench(arm: Robot) -> None:
    found = validate(arm, dataclasses.replace(recorded(arm), wrench_B=None))
    assert found.wrench_B is None
    assert 'f_z' not in text_report(arm, found)


def test_a_drawn_line_keeps_its_peaks() -> None:
    y = np.random.default_rng(1).normal(size=50_000)
    y[31_234] = 99.0
    kept = envelope(y)
    assert kept.size <= POINTS + 2
    assert y[kept].max() == 99.0
    assert y[kept].min() == y.min()


# ---- command ---------------------------------------------------------------------------------------------------------


def test_the_command_prints_tables_and_writes_a_report(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(run), 'honeycomb_arm', '--threshold', '0.1deg', '--start', '0.5', '--end', '2.5']) == 0
    printed = capsys.readouterr().out
    assert 'honeycomb_arm: 2.0 s from state (/state), 100 Hz' in printed
    assert 'passed: free run, median error:' in printed
    assert [file.name for file in tmp_path.iterdir()] == ['run_honeycomb_arm.html']


@pytest.mark.parametrize('of', ['free', 'ahead'])
def test_the_exit_code_is_one_beyond_the_threshold(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], of: str
) -> None:
    monkeypatch.chdir(tmp_path)
    limits = ['--threshold', '0', '--statistic', 'max', '--of', of, '--no-report']
    assert main([str(run), 'honeycomb_arm', *limits]) == 1
    assert re.search(r'failed: .*max error: \S+ rad > 0', capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []


def test_thresholds() -> None:
    assert thresholds(['0.05', '2 mm', '180deg']) == [
        ('', 0.05),
        ('m', pytest.approx(2e-3)),
        ('rad', pytest.approx(np.pi)),
    ]


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        (['nowhere', 'honeycomb_arm'], 'bag nowhere: does not exist'),
        (['RUN', 'no_arm'], "no robot 'no_arm'; shipped are bending_actuator"),
        (['RUN', 'pneumatic_arm'], 'is not of pneumatic_arm: /pressure/measured has no chamber'),
        (['RUN', 'honeycomb_arm', '--source', 'poses'], 'has no poses of honeycomb_arm'),
        (
            ['RUN', 'honeycomb_arm', '--threshold', 'small'],
            '--threshold: expected a number >= 0 with rad, deg',
        ),
        (['RUN', 'honeycomb_arm', '--threshold', '3mm'], '--threshold: honeycomb_arm has no coordinate in m'),
        (
            ['RUN', 'honeycomb_arm', '--horizon', '9'],
            'horizon: expected from 0.01 s, one sample, to less than 3 s',
        ),
        (['RUN', 'honeycomb_arm', '--start', '9'], 'part: expected times within 0 to 3 s, got 9'),
        (['RUN', 'honeycomb_arm', '--report', 'no/where.html'], '--report: no folder no'),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(run) if argument == 'RUN' else argument for argument in arguments]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.startswith('validate: ')
    assert said.count('\n') == 1
    assert list(tmp_path.iterdir()) == []


def test_the_module_runs_and_a_bag_cut_short_gives_no_traceback(run: Path, tmp_path: Path) -> None:
    cut = tmp_path / 'cut'
    shutil.copytree(run, cut)
    (file,) = cut.glob('*.mcap')
    file.write_bytes(file.read_bytes()[:5000])
    command = [sys.executable, '-m', 'soft_estimation.commands.validate', str(cut), 'honeycomb_arm']
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f'validate: bag {cut}: is damaged, truncated or not a rosbag2 bag')
    assert [entry.name for entry in tmp_path.iterdir()] == ['cut']


# ---- progress --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = 'utf-8'

    def isatty(self) -> bool:
        return True


def test_a_progress_bar_shows_up_for_long_work_only() -> None:
    now = [0.0]
    for stream, length in (
        (Terminal(), 0.9),
        (io.StringIO(), 0.9),
        (Terminal(), 10.0),
        (io.StringIO(), 10.0),
    ):
        now[0] = 0.0
        with ProgressBar('reading', stream, lambda: now[0]) as bar:
            for k in range(1, 101):
                now[0] = k / 100 * length
                bar(k / 100)
        text = stream.getvalue()
        assert bool(text) == (length > 1.0)
        if text:
            assert '100 %' in text
            assert text.endswith('\n')


def test_without_matplotlib_there_are_tables_and_no_report(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(validate_command, 'find_spec', lambda _: None)
    assert main([str(run), 'honeycomb_arm']) == 2
    assert 'the report needs matplotlib: pip install' in capsys.readouterr().err
    code = (
        'import sys; sys.modules["matplotlib"] = None; from soft_estimation.commands.validate import main; '
    )
    command = [sys.executable, '-c', code + 'sys.exit(main())', str(run), 'honeycomb_arm', '--no-report']
    assert 'free run' in subprocess.check_output(command, text=True)
