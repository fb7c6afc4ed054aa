"""Two scenarios side by side, and curves over M and K."""

import json
import re
from xml.etree import ElementTree

import pytest

from pipesched import run
from pipesched.compare import differences, title
from pipesched.curves import Curve, draw
from pipesched.views import AXES, CURVED
from pipesched.web import handle
from pipesched.words import LANGUAGES

SVG = "{http://www.w3.org/2000/svg}"
GPIPE = {"schedule": "gpipe", "devices": 4, "micro_batches": 8}


def ask(do="run", settings=None, lang="en", **more):
    request = {"do": do, "settings": settings or {}, "lang": lang, "theme": "light", "width": 720, **more}
    return json.loads(handle(json.dumps(request)))


def rows(first, second, language="en"):
    return {row.name: row[2:] for row in differences(run(**first), run(**second), language)}


def test_gpipe_and_1f1b_differ_in_memory_only():
    found = rows(GPIPE, GPIPE | {"schedule": "1f1b"})
    assert found["makespan"] == ("33", "33", "=")
    assert found["bubble_fraction_of_total"][2] == "="
    assert found["peak_micro_batches"] == ("8", "4", "−4 (−50%)")


def test_interleaving_halves_the_bubble_over_working_time():
    """(p-1)/m = 3/8 against (p-1)/(vm) = 3/16: Megatron-LM s2.2."""
    found = rows(GPIPE, GPIPE | {"schedule": "interleaved_1f1b"})
    assert found["makespan"] == ("33", "28.5", "−4.5 (−13.6%)")
    assert found["bubble_fraction_of_ideal"][2] == "−18.8 points"


def test_a_change_too_small_for_its_digits_is_not_shown_as_none():
    found = rows({"forward": 1}, {"forward": "1.0000001"})
    assert found["makespan"][2].startswith("≈")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_scenario_is_named_by_what_differs_from_the_first_view(language):
    assert "GPipe" in title(run(**GPIPE), language)
    assert title(run(**GPIPE), language).endswith("8")


def test_both_charts_share_one_time_axis():
    """The same time lies at the same x in both: plot is the width of each one's own makespan."""
    short = {"schedule": "gpipe", "devices": 2, "micro_batches": 2}
    answer = ask(settings=GPIPE, pinned=short)
    first, second = ElementTree.fromstring(answer["pinned"]["svg"]), ElementTree.fromstring(answer["svg"])
    scales = [float(svg.get("data-plot")) / float(svg.get("data-end")) for svg in (first, second)]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)
    assert first.get("data-left") == second.get("data-left")
    longer = ask(settings=short, pinned=GPIPE)
    assert float(ElementTree.fromstring(longer["svg"]).get("data-plot")) < float(first.get("data-plot")) * 1.01


def test_a_pinned_scenario_that_cannot_be_run_is_left_out():
    assert ask(settings=GPIPE, pinned={"schedule": "nothing"})["pinned"] is None
    assert ask(settings=GPIPE)["pinned"] is None


@pytest.mark.parametrize("metric", CURVED)
def test_a_point_of_a_curve_is_what_the_page_shows(metric):
    value = getattr(run(**GPIPE).metrics, metric)
    assert ask("point", GPIPE, metric=metric)["y"] == (max(value) if isinstance(value, tuple) else value)


def test_a_case_that_a_schedule_refuses_is_a_problem_and_breaks_the_curve():
    assert ask("point", {"schedule": "dualpipe", "devices": 4, "micro_batches": 3}, metric="makespan")["problems"]
    svg = draw([Curve("x", [(1, 4.0), (2, None), (3, 2.0), (4, 1.0)])], axis="M", title="t", here=None, is_share=False)
    (path,) = re.findall(r'<path d="(M[^"]*)" fill="none"', svg)
    assert path.count("M") == 2


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_curves_name_each_schedule_and_mark_the_scenario(axis, theme):
    series = [{"schedule": name, "points": [[1, 0.75], [8, 0.3]]} for name in ("gpipe", "zb_h1")]
    answer = ask("curves", GPIPE, axis=axis, metric="bubble_fraction_of_total", series=series, theme=theme)
    root = ElementTree.fromstring(answer["svg"])
    assert [group.get("data-curve") for group in root.iter(f"{SVG}g")] == ["GPipe", "ZB-H1"]
    rings = [circle for circle in root.iter(f"{SVG}circle") if circle.get("fill") == "none"]
    assert len(rings) == (axis == "micro_batches")  # M = 8 is among the points, K = 4 is not
    assert not {name for element in root.iter() for name in element.keys() if name == "style"}  # noqa: SIM118


@pytest.mark.parametrize("of", ["queues", "activations"])
def test_what_is_drawn_under_a_chart_beside_a_pinned_one_keeps_its_axis(of):
    short = {"schedule": "gpipe", "devices": 2, "micro_batches": 2}
    chart = ElementTree.fromstring(ask(settings=short, pinned=GPIPE)["svg"])
    strips = ElementTree.fromstring(ask("profile", short, of=of, pinned=GPIPE)["svg"])
    assert float(strips.get("data-plot")) == pytest.approx(float(chart.get("data-plot")), abs=0.1)
    assert float(strips.get("data-left")) == pytest.approx(float(chart.get("data-left")), abs=0.1)
