"""Tests import the library from the checkout, installed or not; browser tests get the built page and a Chromium."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``python3 app build`` makes: what users get is what is tested."""
    from hosting.build import build, fetch_with_progress
    from hosting.runtime import read_lock

    folder = tmp_path_factory.mktemp("site") / "built"
    build(folder, read_lock(), fetch_with_progress)
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """A Chromium, found by tests/__main__.py."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--disable-gpu", "--disable-background-networking"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium's sandbox does not start for root
        browser = playwright.chromium.launch(executable_path=os.environ["PIPESCHED_CHROMIUM"], args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[object]:
    """That folder behind a server of ours."""
    from site_server import serving

    with serving(site) as server:
        yield server


@pytest.fixture(scope="session")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``python3 app build --single-file`` writes, in a folder whose name has a space."""
    from hosting.build import fetch_with_progress
    from hosting.onefile import build_one_file
    from hosting.runtime import read_lock

    path = tmp_path_factory.mktemp("in one") / "a b" / "pipesched.html"
    path.parent.mkdir()
    build_one_file(path, read_lock(), fetch_with_progress)
    return path


@pytest.fixture
def opened(chromium: object) -> Iterator[object]:
    """Open pages of their own; they are closed at the end."""
    from test_page import Visit

    visits = []

    def open_page(url: str, **context: object) -> Visit:
        visits.append(Visit(chromium, url, **context))
        return visits[-1]

    yield open_page
    for visit in visits:
        visit.context.close()
