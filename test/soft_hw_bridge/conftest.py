"""Fixtures for several devices; also puts this folder on the import path."""

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
    """Map host names to addresses; empty until the test fills it."""
    known = {}

    def look_up(name):
        if name not in known:
            raise socket.gaierror(-2, 'Name or service not known')
        return known[name]

    monkeypatch.setattr(socket, 'gethostbyname', look_up)
    return known
