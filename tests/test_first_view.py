"""The first view, drawn before any script runs, is the chart that Python draws: golden file and first paint in one."""

import os
from pathlib import Path

import pytest

from pipesched import run

STATIC = Path(__file__).parents[1] / "static"
FIRST_VIEWS = {
    "first-view.svg": {"width": 800, "theme": "light"},
    "first-view-dark.svg": {"width": 800, "theme": "dark"},
    "first-view-narrow.svg": {"width": 360, "theme": "light"},
    "first-view-narrow-dark.svg": {"width": 360, "theme": "dark"},
}


@pytest.mark.parametrize("name", FIRST_VIEWS)
def test_first_view_is_what_python_draws(name: str) -> None:
    drawn, file = run().svg(**FIRST_VIEWS[name]), STATIC / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(drawn, encoding="utf-8")
    changed = file.with_stem(file.stem + "-changed")
    if file.read_text(encoding="utf-8") != drawn:
        changed.write_text(drawn, encoding="utf-8")
        pytest.fail(f"{name} is not what Python draws; see {changed.name} beside it, or set UPDATE_GOLDEN=1")
    changed.unlink(missing_ok=True)
