"""Who commands the pressures: one controller after the other, and never two at once."""

import pytest

from soft_hw_bridge.pressure.safety import NOBODY, heard_from

TIMEOUT = 0.2  # [s]


def speak(*words):
    """Return the sources after commands of (time of decision, source), and who was a rival meanwhile."""
    sources, rivals = NOBODY, set()
    for t, source in words:
        sources = heard_from(sources, source, t, TIMEOUT)
        rivals |= set(sources.heard) if sources.are_rivals else set()
    return sources, rivals


@pytest.mark.parametrize('name', ['', 'b'])
def test_sources_that_alternate_are_rivals(name):
    sources, _ = speak((0.0, 'a'), (0.01, name))
    assert (sources.current, sources.are_rivals) == (name, False)
    sources, rivals = speak((0.0, 'a'), (0.01, name), (0.02, 'a'))
    assert sources.are_rivals
    assert rivals == {'a', name}
    sources, _ = speak((0.0, 'a'), (0.01, name), (0.02, 'a'), (0.03, 'a'))
    assert sources.are_rivals  # the other was heard just now


def test_rivals_are_no_more_once_all_but_one_are_silent():
    fight = (0.0, 'a'), (0.01, 'b'), (0.02, 'a'), (0.03, 'b')
    assert speak(*fight, (0.1, 'b'), (0.21, 'b'))[0].are_rivals
    assert not speak(*fight, (0.1, 'b'), (0.23, 'b'))[0].are_rivals


def test_who_takes_over_is_no_rival():
    """Nor who takes over again, once it was silent for the time-out; nor who commands alone, by name or not."""
    assert speak((0.0, 'a'), (0.1, 'a'), (0.11, 'b'), (0.2, 'b'), (0.31, 'a'))[1] == set()
    assert speak(*((0.01 * k, '') for k in range(50)))[1] == set()


def test_what_was_decided_before_the_change_and_comes_late_changes_nothing():
    before = speak((0.0, 'a'), (0.01, 'b'))[0]
    assert heard_from(before, 'a', 0.009, TIMEOUT) == before
