"""The package: a wheel that needs no network to be built or installed, and one version everywhere."""

import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from base64 import urlsafe_b64encode
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

import pipesched
from hosting.wheel import wheel, wheel_name

ROOT = Path(__file__).resolve().parents[1]
NAME = wheel_name("pipesched", pipesched.__version__)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OFFLINE = ["--no-index", "--no-deps", "--disable-pip-version-check", "-q"]


@pytest.fixture(scope="module")
def ours() -> bytes:
    return wheel(ROOT / "app" / "pipesched", ROOT, pipesched.__version__)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The wheel that ``pip install .`` would install, built by setuptools in a copy of the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "app", copy / "app", ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        *OFFLINE,
        "--no-build-isolation",
        "-w",
        str(copy / "out"),
        str(copy),
    ]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    (found,) = (copy / "out").iterdir()
    return found


def test_equal_sources_give_equal_bytes(ours):
    assert wheel(ROOT / "app" / "pipesched", ROOT, pipesched.__version__) == ours


def test_every_file_is_in_the_record_with_its_hash_and_size(ours):
    archive = ZipFile(io.BytesIO(ours))
    (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
    rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
    assert list(rows) == archive.namelist()
    for name, (digest, size) in rows.items():
        content = archive.read(name)
        expected = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert (digest, size) == (("", "") if name == record else (f"sha256={expected}", str(len(content))))


def test_it_holds_and_says_what_setuptools_makes_of_the_same_project(ours, built):
    mine, theirs = ZipFile(io.BytesIO(ours)), ZipFile(built)
    assert built.name == NAME
    files = [{n: a.read(n) for n in a.namelist() if n.startswith("pipesched/")} for a in (mine, theirs)]
    assert files[0] == files[1]
    assert {"pipesched/py.typed", "pipesched/locales/pl.json", "pipesched/schedules/gpipe.py"} <= files[0].keys()
    info = f"pipesched-{pipesched.__version__}.dist-info"
    said, expected = (message_from_bytes(a.read(f"{info}/METADATA")) for a in (mine, theirs))
    for field in ("Name", "Version", "Summary", "Author", "Keywords", "Requires-Python", "Description-Content-Type"):
        assert said[field] == expected[field], field
    assert said["License"] == expected["License-Expression"] == "MIT"
    assert said.get_payload() == expected.get_payload()
    needs = [[re.sub(r"[ \"']", "", need) for need in one.get_all("Requires-Dist")] for one in (said, expected)]
    assert sorted(needs[0]) == sorted(needs[1])
    assert said.get_all("Provides-Extra") == expected.get_all("Provides-Extra") == ["figures"]
    points = [a.read(f"{info}/entry_points.txt").split() for a in (mine, theirs)]
    assert points[0] == points[1]


def test_it_is_installed_without_a_network_and_runs(ours, tmp_path):
    (tmp_path / NAME).write_bytes(ours)
    venv.create(tmp_path / "fresh", with_pip=True)
    programs = tmp_path / "fresh" / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"LC_ALL": "C.UTF-8"}

    def call(*command):
        answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    call(programs / "python", "-m", "pip", "install", *OFFLINE, tmp_path / NAME)
    assert call(programs / "pipesched", "--version") == f"pipesched {pipesched.__version__}\n"
    assert "time with overlap" in call(programs / "pipesched", "run", "--schedule", "gpipe")
    assert "2 combinations" not in call(programs / "pipesched", "sweep", "--devices", "2,3", "--jobs", "2")
    program = "import pipesched; print(pipesched.__file__); print(pipesched.run().metrics.makespan)"
    place, makespan = call(programs / "python", "-c", program).splitlines()
    assert Path(place).is_relative_to(tmp_path) and makespan == "6"


def test_the_version_is_read_from_one_place():
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    text = (ROOT / "app" / "pipesched" / "__init__.py").read_text(encoding="utf-8")
    assert text.count(pipesched.__version__) == 1
    assert re.fullmatch(r"\d+\.\d+\.\d+", pipesched.__version__)
