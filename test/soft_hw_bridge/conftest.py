"""What several devices are tested with; lets the tests of this folder import what lies beside them."""

import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


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
