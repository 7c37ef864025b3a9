"""Independent clients read the emulator's frames of every version."""

import json
import subprocess
import sys
import time

import pytest

from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.pose import Pose

VERSIONS = [(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)]
POSES = {
    'base': Pose((0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0)),
    'tip': Pose((-1.0, 0.5, 2.0), (0.5, -0.5, 0.5, 0.5)),
}
READ_WITH_LIBMOTIONCAPTURE = """
import json, sys, motioncapture
motive = motioncapture.connect('optitrack', json.loads(sys.argv[1]))
for _ in range(20):
    motive.waitForNextFrame()
bodies = motive.rigidBodies
print(json.dumps({name: [*map(float, b.position), b.rotation.x, b.rotation.y, b.rotation.z, b.rotation.w]
                  for name, b in bodies.items()}))
"""


def streaming(names, version, is_multicast):
    emulator = NatNetEmulator(names, MotiveSettings(version, is_multicast, up_axis='z'))
    return emulator, Loop(lambda _: emulator.send(POSES), emulator.serve, 100)


@pytest.mark.parametrize('version', VERSIONS)
def test_libmotioncapture_reads_the_poses(version):
    pytest.importorskip('motioncapture')
    # It ignores the quaternion that 4.2 added to a definition, so it finds only one body there.
    names = list(POSES)[:1] if version >= (4, 2) else list(POSES)
    emulator, loop = streaming(names, version, is_multicast=True)
    options = {
        'hostname': '127.0.0.1',
        'interface_ip': '127.0.0.1',
        'port_command': str(emulator.command_port),
    }
    with loop:
        done = subprocess.run(
            [sys.executable, '-c', READ_WITH_LIBMOTIONCAPTURE, json.dumps(options)],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    emulator.close()
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen == {name: pytest.approx([*POSES[name].p_WB, *POSES[name].quat_WB]) for name in names}


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('is_multicast', [False, True])
def test_natnet_reads_the_poses_and_names(version, is_multicast):
    natnet = pytest.importorskip('natnet')
    emulator, loop = streaming(list(POSES), version, is_multicast)
    frames, definitions = [], []
    client = natnet.NatNetClient(
        command_port=emulator.command_port, data_port=emulator.data_port, use_multicast=is_multicast
    )
    client.on_data_frame_received_event.handlers.append(frames.append)
    client.on_data_description_received_event.handlers.append(definitions.append)
    with loop, client:
        client.request_modeldef()
        end = time.monotonic() + 30
        while not (frames and definitions) and time.monotonic() < end:
            client.update_sync()
            time.sleep(0.01)
    emulator.close()
    ids = {body.id_num: body.name for body in definitions[-1].rigid_bodies}
    seen = {ids[body.id_num]: [*body.pos, *body.rot] for body in frames[-1].rigid_bodies}
    assert seen == {name: pytest.approx([*pose.p_WB, *pose.quat_WB]) for name, pose in POSES.items()}
    assert [marker.id_num >> 16 for marker in frames[-1].labeled_markers] == [1] * 4 + [2] * 4
