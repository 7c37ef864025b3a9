"""`tools.made_bag` writes a complete bag or no bag."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import made_bag


def test_a_bag_that_was_interrupted_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(made_bag.Rig):
        def rows(self, stream: str, rate: float) -> made_bag.Rows:
            for k, row in enumerate(super().rows(stream, rate)):
                if k == 20:
                    raise KeyboardInterrupt
                yield row

    out = tmp_path / 'bag'
    command = ['bending_actuator', str(out), '--seconds', '1', '--streams', 'pressure']
    with monkeypatch.context() as patch:
        patch.setattr(made_bag, 'Rig', Interrupted)
        assert made_bag.main(command) == 130
    assert list(tmp_path.iterdir()) == []
    assert made_bag.main(command) == 0
    assert list(out.iterdir())
