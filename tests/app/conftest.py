"""What commands say must not depend on how long the machine takes."""

import pytest


@pytest.fixture(autouse=True)
def _no_lines_about_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line about progress or waiting comes by itself, however slow a build is."""
    monkeypatch.setattr("speculoos.report._INTERVAL", 1e6)
    monkeypatch.setattr("tb.common.build._PATIENCE", 1e6)
