"""A picture to take away stands alone and shows what the page shows; a thumbnail is small; some lie ready."""

import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pipesched import run
from pipesched.picture import FIGURES, MOST, picture, stem, thumbnail
from pipesched.scenario import DEFAULTS, SETTINGS
from pipesched.schedules import REGISTRY
from pipesched.web import handle
from pipesched.words import catalogue

STATIC = Path(__file__).parents[1] / "static"
SCRIPT = (STATIC / "js" / "pipeline-schedule.js").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
GPIPE = {"schedule": "gpipe", "devices": 4, "micro_batches": 8}


def ask(**more):
    details = {"settings": GPIPE, "lang": "en", "theme": "light", "width": 700, "transparent": False} | more
    return json.loads(handle(json.dumps({"do": "picture"} | details)))


def test_a_picture_is_the_chart_of_the_page_on_its_background():
    chart, whole = run(**GPIPE).svg(width=700), ask()["svg"]
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    assert whole.replace(ground, "", 1) == chart
    assert ask(transparent=True)["svg"] == chart
    assert 'fill="#11161d"' in ask(theme="dark")["svg"]


@pytest.mark.parametrize("schedule", REGISTRY)
def test_a_picture_and_a_thumbnail_need_no_style_sheet_no_script_and_nothing_from_elsewhere(schedule):
    settings = {"order": "0F0 0B0\n1F0 1B0"} if schedule == "order" else {"devices": 4, "micro_batches": 8}
    result = run(schedule=schedule, **settings)
    for drawing in (picture(result, run()), picture(result, transparent=True), thumbnail(result.timeline)):
        root = ET.fromstring(drawing)
        assert root.tag == SVG + "svg" and root.get("width") and root.get("viewBox")
        tags = {node.tag.removeprefix(SVG) for node in root.iter()}
        assert tags <= {"svg", "title", "defs", "pattern", "rect", "path", "text", "g"}
        names = {name for node in root.iter() for name in node.attrib}
        assert not any(name in ("style", "href") or name.startswith("on") for name in names)


def test_a_pinned_scenario_stands_above_on_the_same_axis():
    answer = ask(pinned={"schedule": "sequential"})
    first, second = ET.fromstring(answer["svg"]).findall(f"{SVG}svg")
    assert "sequential" in answer["svg"] and "GPipe" in answer["svg"]
    scale = {float(drawing.get("data-plot")) / float(drawing.get("data-end")) for drawing in (first, second)}
    assert len({round(value, 2) for value in scale}) == 1
    assert float(second.get("y")) >= float(first.get("y")) + float(first.get("height"))


def test_a_file_is_called_after_schedule_devices_and_micro_batches():
    assert stem(run(**GPIPE)) == ask()["stem"] == "pipesched-gpipe-4x8"
    own = run(schedule="order", order="0F0 0B0\n1F0 1B0")
    assert stem(own) == "pipesched-order-2x1"


def test_a_thumbnail_has_every_block_once():
    timeline = run(**GPIPE).timeline
    paths = re.findall(r'<path d="([^"]+)" fill="(#\w+)"', thumbnail(timeline))
    blocks = sum(path.count("M") for path, fill in paths if fill != "#f1f3f6")
    assert blocks == len(timeline.position) == 64
    assert len(thumbnail(timeline)) < 3000


def test_what_is_too_much_has_no_thumbnail():
    large = run(schedule="gpipe", devices=8, micro_batches=64)
    assert len(large.timeline.position) > MOST
    assert thumbnail(large.timeline) == ""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_that_lie_ready_are_what_python_draws(name, theme):
    drawn = thumbnail(run(FIGURES[name]).timeline, theme) + "\n"
    file = STATIC / "figures" / (name + ("-dark" if theme == "dark" else "") + ".svg")
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn


def test_the_script_of_the_component_knows_fields_defaults_figures_and_words():
    def constant(name):
        return json.loads(re.sub(r"(\w+): ", r'"\1": ', re.search(rf"const {name} = (.*?);\n", SCRIPT)[1]))

    assert constant("FIELDS") == list(SETTINGS)
    assert constant("FIGURES") == list(FIGURES)
    assert constant("DEFAULTS") == {name: str(DEFAULTS[name]) for name in ("schedule", "devices", "micro_batches")}
    for language in ("en", "pl"):
        (block,) = re.findall(rf"^    {language}: {{(.*?)^    }}", SCRIPT, re.DOTALL | re.MULTILINE)
        words = json.loads("{" + block.strip().removesuffix(",") + "}")
        assert words == {key: text for key, text in catalogue(language).items() if key.startswith("component.")}


def test_the_script_of_the_component_can_be_read_in_any_encoding():
    assert SCRIPT.isascii()
