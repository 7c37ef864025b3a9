"""Robot files: one error lists all mistakes, each with key path, expected and found."""

from __future__ import annotations

import pytest
import yaml

import soft_dynamics as sd
from soft_dynamics.description.robot_files import robot_file

LINK = {'name': 'b', 'type': 'link', 'length': 0.1, 'mass': 0.2}
DISC = {'name': 'd', 'type': 'disc', 'thread_length': 1.0, 'radius': 1.0, 'mass': 1.0}
ARC = {'name': 'a', 'type': 'arc', 'length': 0.2, 'mass': 0.5}
CHAMBER = {'name': 'c', 'segment': 'a'}
GOOD = {'format': 1, 'name': 'arm', 'segments': [ARC]}


def problems(data):
    with pytest.raises(sd.RobotFileError) as caught:
        sd.Robot.from_dict(data)
    return caught.value.problems


@pytest.mark.parametrize('name', sd.robot_names())
def test_shipped_robots_load_and_name_their_source(name):
    robot = sd.load(name)
    assert robot.name == name
    assert len(robot.coordinate_names) == len(set(robot.coordinate_names)) == robot.nq
    assert robot.description.source


def test_three_mistakes_give_three_lines(tmp_path):
    data = yaml.safe_load(robot_file('honeycomb_arm').read_text())
    data['segments'][1]['mass'] = -0.8
    data['gravity'] = [0.0, 0.0]
    data['actuation']['presure_max'] = data['actuation'].pop('pressure_max')
    path = tmp_path / 'mine.yaml'
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(sd.RobotFileError) as caught:
        sd.load(path)
    lines = str(caught.value).splitlines()
    assert 'mine.yaml: gravity: expected 3 entries, found 2' in lines
    assert 'mine.yaml: segments[1].mass: expected a finite number >= 0 [kg], found -0.8' in lines
    assert any(
        line.startswith('mine.yaml: actuation.presure_max: unknown key, expected one of') for line in lines
    )
    assert len(lines) == 3


@pytest.mark.parametrize(
    ('change', 'line'),
    [
        ({'format': 2}, 'format: expected one of 1, found 2'),
        ({'name': 3}, 'name: expected a text, found 3'),
        ({'segments': []}, 'segments: expected at least one, found none'),
        ({'segments': 'none'}, 'segments: expected a list of any number of x a mapping of'),
        ({'segments': [{**ARC, 'type': 'spring'}]}, 'segments[0].type: expected one of arc, link, universal'),
        (
            {'segments': [{'name': 'a', 'type': 'arc', 'mass': 1.0}]},
            'segments[0].length: missing, expected a finite number > 0',
        ),
        (
            {'segments': [{**ARC, 'mass': float('nan')}]},
            'segments[0].mass: expected a finite number >= 0 [kg], found nan',
        ),
        (
            {'segments': [{**ARC, 'extensible': 'yes'}]},
            "segments[0].extensible: expected true or false, found 'yes'",
        ),
        (
            {'segments': [{**ARC, 'quadrature_points': 2.5}]},
            'segments[0].quadrature_points: expected an integer >= 1',
        ),
        ({'segments': [ARC, ARC]}, "segments[1].name: expected a name not used yet, found 'a'"),
        (
            {'segments': [{**ARC, 'material': {'stiffness': [1.0]}}]},
            'segments[0].material.stiffness: expected 2 entries, found 1',
        ),
        ({'segments': [{**ARC, 'coordinates': 'difference'}]}, 'segments[0].lever: expected > 0'),
        ({'base': {'type': 'free'}}, 'base.mass: a free base needs mass and inertia'),
        (
            {'sensors': [{'name': 'plate-1', 'kind': 'mocap', 'frame': 'a'}]},
            'sensors[0].name: expected a name of 1 to 64 letters, digits and single _, with a letter first '
            "(it is part of a topic), found 'plate-1'",
        ),
        (
            {'sensors': [{'name': 's', 'kind': 'mocap', 'frame': 'hand'}]},
            "sensors[0].frame: expected base, tip or a segment, found 'hand'",
        ),
        (
            {'actuation': {'pressure_max': 1.0, 'chambers': [{**CHAMBER, 'segment': 'b'}]}},
            'actuation.chambers[0].segment: expected all or one of a',
        ),
        (
            {'actuation': {'pressure_max': 1.0, 'chambers': [CHAMBER]}},
            'actuation.chambers[0].gain: expected 2 entries, found 0',
        ),
        (
            {'actuation': {'chambers': [{**CHAMBER, 'gain': [1.0, 1.0]}]}},
            'actuation.pressure_max: expected > pressure_min 0, found 0',
        ),
        (
            {'actuation': {'pressure_min': 1e3, 'pressure_max': 1e5}},
            'actuation.pressure_min: expected a finite number <= 0 [Pa], found 1000',
        ),
        (
            {'segments': [ARC, {**LINK, 'inertia': [1.0, 1.0, 5.0]}]},
            'segments[1].inertia: expected principal moments >= 0 [kg m^2], each at most the sum of the other two, '
            'found 1, 1, 5',
        ),
        (
            {'segments': [ARC, {**LINK, 'inertia': [1.0, 1.0, 1.0, 2.0, 0.0, 0.0]}]},
            'segments[1].inertia: expected principal moments >= 0 [kg m^2], each at most the sum of the other two, '
            'found -1, 1, 3',
        ),
        (
            {'segments': [{**DISC, 'inertia': [0.1, 0.2, 0.5]}]},
            'segments[0].inertia: expected principal moments >= 0',
        ),
        (
            {'base': {'type': 'free', 'mass': 1.0, 'inertia': [1.0, 3.0, 1.0]}},
            'base.inertia: expected principal moments >= 0',
        ),
        (
            {'segments': [{**DISC, 'damping_on': 'threads'}]},
            "segments[0].damping_on: expected one of angles, rates, found 'threads'",
        ),
    ],
)
def test_each_mistake_is_named(change, line):
    found = problems({**GOOD, **change})
    assert len(found) == 1
    assert found[0].startswith(line)


def test_a_chamber_of_all_segments_leaves_links_alone():
    chamber = {'name': 'c', 'segment': 'all', 'gain': [1e-6, 2e-6]}
    robot = sd.Robot.from_dict(
        {**GOOD, 'segments': [LINK, ARC], 'actuation': {'pressure_max': 1.0, 'chambers': [chamber]}}
    )
    assert robot.actuation([0.0, 0.0]).ravel().tolist() == [1e-6, 2e-6]


def test_discs_stand_alone():
    assert problems({**GOOD, 'segments': [ARC, DISC]})[0].startswith('segments: discs stand alone')


@pytest.mark.parametrize(
    'inertia', [[1.0, 1.0, 2.0], [0.333, 0.667, 1.0], [0.0, 1.0, 1.0], [1.5, 1.5, 1.0, 0.5, 0.0, 0.0]]
)
def test_inertias_of_plates_rods_and_turned_bodies_are_taken(inertia):
    assert sd.Robot.from_dict({**GOOD, 'segments': [ARC, {**LINK, 'inertia': inertia}]}).nq == 2


def test_what_is_no_robot_file_is_said_in_one_line(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('segments: [1, 2\nname: x')
    with pytest.raises(sd.RobotFileError, match=r'mine.yaml: line 2: not YAML'):
        sd.load(path)
    path.write_text('just words')
    with pytest.raises(sd.RobotFileError, match='top level: expected a mapping'):
        sd.load(path)
    path.write_bytes(b'\xff\xfe\x00')
    with pytest.raises(sd.RobotFileError, match='not a text file'):
        sd.load(path)
    with pytest.raises(FileNotFoundError, match="no robot 'octopus'; shipped are"):
        sd.load('octopus')


def test_numbers_may_be_written_as_people_write_them(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(
        '{format: 1, name: x, segments: [{name: a, type: arc, length: 2e-1, mass: 5E2, radius: 1}]}'
    )
    segment = sd.load(path).description.segments[0]
    assert (segment.length, segment.mass, segment.radius) == (0.2, 500.0, 1.0)


def test_overrides_reach_single_keys():
    robot = sd.load('honeycomb_arm', {'segment_defaults': {'lengths': 'free'}, 'tip_load': 0.5})
    assert robot.nq == 16
    assert robot.description.tip_load == 0.5
