"""TikZ and Mermaid, read back by rules written down here and compared with the Timeline."""

import re

import pytest
from hypothesis import given

from pipesched import run
from pipesched.markup import mermaid, tikz
from scenarios import scenarios

BLOCK = re.compile(r"\\draw\[([FBIWRU])\] \(([\d.]+),(-?[\d.]+)\) rectangle node \{(\w+)\} \(([\d.]+),(-?[\d.]+)\);")


@given(scenarios())
def test_a_tikz_picture_has_every_block_where_the_timeline_has_it(scenario):
    timeline = run(scenario).timeline
    text = tikz(timeline)
    assert text.count("{") == text.count("}") and text.startswith(r"\begin{tikzpicture}")
    drawn = [(kind, name, float(x), float(x2), round(float(y))) for kind, x, y, name, x2, y2 in BLOCK.findall(text)]
    expected = [
        (op.kind, f"{op.kind}{op.micro_batch + 1}", one.start, one.end, one.device)
        for one in timeline.intervals
        for op in one.op.ops
    ]
    assert [one[:2] for one in drawn] == [one[:2] for one in expected]
    for (*_, start, end, device), (*_, first, last, home) in zip(drawn, expected, strict=True):
        scale = 12 / max(timeline.costs.time(timeline.end), 1e-9)
        assert (start, end) == pytest.approx((first * scale, last * scale), abs=1e-5) and device == home


def test_only_the_kinds_that_are_there_get_a_style_and_the_papers_letters_can_be_had():
    text = tikz(run(schedule="zb_h1").timeline, letters={"B": "BW", "I": "B"})
    assert re.findall(r"([A-Z])/\.style", text) == ["F", "I", "W"]
    assert r"\draw[I] " in text and "node {B1}" in text and "node {I1}" not in text


def test_a_tikz_picture_is_as_wide_as_a_page_whatever_the_unit():
    for forward in ("0.001", "1", "1000000"):
        text = tikz(run(forward=forward).timeline)
        assert "x=1cm" in text and max(float(x) for *_, x, _ in BLOCK.findall(text)) == 12


@given(scenarios())
def test_a_mermaid_chart_has_every_block_in_the_section_of_its_device(scenario):
    timeline = run(scenario).timeline
    head, *sections = mermaid(timeline).split("    section ")
    assert head.startswith("gantt\n") and "dateFormat x" in head
    rows = [
        [(name, int(start), int(end)) for name, start, end in re.findall(r"^    (.+) :(\d+), (\d+)$", section, re.M)]
        for section in sections
    ]
    expected = [[] for _ in sections]
    for one in timeline.intervals:
        name = " & ".join(f"{op.kind}{op.micro_batch + 1}" for op in one.op.ops)
        expected[one.device].append((name, 1000 * one.start, 1000 * one.end))
    for row, wanted in zip(rows, expected, strict=True):
        assert [name for name, *_ in row] == [name for name, *_ in wanted]
        for (_, *times), (_, *right) in zip(row, wanted, strict=True):
            assert times == pytest.approx(right, abs=0.51)


@pytest.mark.parametrize("language", ["en", "pl"])
def test_a_mermaid_title_holds_nothing_that_ends_it(language):
    title = mermaid(run(forward="1.5").timeline, language=language).splitlines()[1]
    assert title.startswith("    title ") and not set(title) & set(":;#")
