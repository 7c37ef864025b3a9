"""What several devices are tested with."""

import socket

import pytest


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
