"""What several devices are tested with; lets the tests of this folder import what lies beside them."""

import os
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# `make test-long` runs them.
collect_ignore = [] if os.environ.get('SOFT_ROBOT_LONG') else ['test_air_path_mutations.py']


@pytest.fixture
def known(monkeypatch):
    """The hosts that have an address, by name: none until the test says so."""
    known = {}

    def look_up(name):
        if name not in known:
            raise socket.gaierror(-2, 'Name or service not known')
        return known[name]

    monkeypatch.setattr(socket, 'gethostbyname', look_up)
    return known
