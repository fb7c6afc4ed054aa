"""The charts: what is drawn is what happened, in colours that can be read, in a size that stays small."""

import re
from collections import defaultdict
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipesched import run, strips
from pipesched.ink import PALETTES, PATTERNS, deeper
from pipesched.run import read
from pipesched.schedules import REGISTRY
from pipesched.words import LANGUAGES
from scenarios import TRAINED, example, scenarios

SVG = "{http://www.w3.org/2000/svg}"


def shown(element):
    return tuple(element.get(f"data-{key}") for key in ("op", "device", "start", "end"))


@given(scenarios())
def test_every_block_drawn_is_a_block_of_the_timeline(scenario):
    result = run(scenario)
    root = ElementTree.fromstring(result.svg(width=900))
    assume(root.get("data-dense") is None)
    drawn = [shown(group) for group in root.iter(f"{SVG}g") if group.get("class") == "op"]
    assert drawn == [tuple(map(str, (i.op, i.device, i.start, i.end))) for i in result.timeline.intervals]


@given(scenarios())
def test_blocks_lie_where_their_times_say_and_inside_the_plot(scenario):
    result = run(scenario)
    root = ElementTree.fromstring(result.svg(width=900))
    left, plot, end = (float(root.get(f"data-{key}")) for key in ("left", "plot", "end"))
    assert left + plot <= 900
    for group in root.iter(f"{SVG}g"):
        if group.get("class") in ("op", "gap"):
            x = float(group.find(f"{SVG}rect").get("x"))
            assert x == pytest.approx(left + plot * float(group.get("data-start")) / end + 0.5, abs=0.01)


@given(scenarios())
def test_every_bubble_is_drawn_as_waiting_or_done(scenario):
    result = run(scenario)
    timeline, time = result.timeline, result.timeline.costs.time
    root = ElementTree.fromstring(result.svg(width=900))
    assume(root.get("data-dense") is None)
    drawn = [
        tuple(group.get(f"data-{key}") for key in ("gap", "device", "start", "end"))
        for group in root.iter(f"{SVG}g")
        if group.get("class") == "gap"
    ]
    assert drawn == [
        ("done" if gap.before is None else "waits", str(gap.device), str(time(gap.start)), str(time(gap.end)))
        for device in range(timeline.schedule.devices)
        for gap in timeline.gaps(device)
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("schedule", REGISTRY)
@pytest.mark.parametrize("width", [320, 800])
def test_a_chart_stands_alone(schedule, theme, language, width):
    """No style sheet, script, foreign content or anything fetched: it shows under the strictest policy."""
    text = run(example(schedule, 4, 9)).svg(width=width, theme=theme, language=language)
    root = ElementTree.fromstring(text)
    elements = list(root.iter())
    assert {element.tag.removeprefix(SVG) for element in elements} <= {
        *("svg", "title", "defs", "pattern", "path", "rect", "text", "g")
    }
    for element in elements:
        assert not {name for name in element.keys() if name == "style" or name.startswith("on") or "href" in name}  # noqa: SIM118
    ids = [element.get("id") for element in elements if element.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)
    assert not re.search(r"\b(nan|inf)\b", text)


STRIPS = {"queues": strips.queues, "activations": strips.activations}
GPT3 = {"hidden_size": 12288, "sequence_length": 2048, "heads": 96, "layers": 96}


def strip_root(result, of, width=900, theme="light", language="en"):
    return ElementTree.fromstring(STRIPS[of](result, width=width, theme=theme, language=language).svg)


@given(scenarios(), st.sampled_from([320, 900]), st.sampled_from(LANGUAGES))
def test_strips_lie_under_the_chart_on_its_time(scenario, width, language):
    result = run(scenario)
    chart = ElementTree.fromstring(result.svg(width=width, language=language))
    for of in STRIPS:
        strip = strip_root(result, of, width, language=language)
        for fact in ("data-left", "data-plot", "data-end", "width"):
            assert strip.get(fact) == chart.get(fact)


def outline(root, strip, css="area"):
    """Read the steps of a strip back from its path, as (x, height), and its height at the peak."""
    (group,) = (group for group in root.iter(f"{SVG}g") if group.get("data-strip") == str(strip))
    (path,) = (path.get("d") for path in group.iter(f"{SVG}path") if path.get("class") == css)
    base = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
    return [(float(x), base - float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)]


@given(scenarios(TRAINED))
def test_a_strip_steps_where_and_as_high_as_what_it_shows(scenario):
    result = run(scenario)
    root, curves = strip_root(result, "activations", 8000), result.activation_profiles
    left, plot = (float(root.get(f"data-{key}")) for key in ("left", "plot"))
    (limit,) = {float(path.get("data-limit")) for path in root.iter(f"{SVG}path") if path.get("data-limit")} or {0}
    highest = max(limit, *(curve.peak for curve in curves))
    full = (max(20, min(44, 400 / len(curves)))) - 4 - 2
    for device, curve in enumerate(curves):
        if not curve.peak:
            continue  # a device without layers keeps nothing for any time: there is no outline
        steps = list(zip(curve.ticks, curve.values, strict=True))
        expected = [
            (left + plot * float(Fraction(tick, result.timeline.end)), full * value / highest)
            for tick, value in steps[0 if steps[0][1] else 1 :]
        ]
        assert len(steps) < plot / 2
        for (x, y), (at, high) in zip(outline(root, device), expected, strict=True):
            assert x == pytest.approx(at, abs=0.1)
            assert y == pytest.approx(high, abs=0.01)


def test_a_strip_with_more_steps_than_columns_shows_the_highest_of_each():
    """Behind a slow stage the last device keeps one activation and none in turn: over 390 teeth in 180 columns."""
    result = run(schedule="1f1b", devices=4, micro_batches=400, slow_factor=2)
    values = result.activation_profiles[3].values
    assert set(values) == {0, 1}
    assert values.count(1) > 390
    (up, down) = outline(strip_root(result, "activations", 400), 3)
    assert up[1] == pytest.approx(38 / 4)  # K = 4 are the most on any device
    assert down[1] == 0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("schedule", REGISTRY)
def test_strips_stand_alone_and_state_their_peaks(schedule, theme, language):
    result = run(example(schedule, 4, 9, **GPT3))
    peaks = {"queues": result.metrics.peak_queue, "activations": result.metrics.peak_activations}
    for of, expected in peaks.items():
        root = strip_root(result, of, 320, theme, language)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {"svg", "title", "path", "text", "g"}
        groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "strip"]
        assert [int(group.get("data-peak")) for group in groups] == list(expected)
        for group, peak in zip(groups, expected, strict=True):
            words = group.findall(f"{SVG}text")
            assert len(words) == (2 if peak else 1)
            assert not peak or words[1].text.startswith(str(peak))


def test_the_memory_limit_is_a_line_that_the_curve_it_counts_never_crosses():
    root = strip_root(run(schedule="zb_auto", devices=4, micro_batches=12, memory_limit=5), "activations")
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "limit"]
    assert [line.get("data-limit") for line in lines] == ["5"] * 4
    for device, line in enumerate(lines):
        base = 8 + 44 * device + 40
        height = base - float(re.match(r"M[\d.]+ ([\d.]+)", line.get("d"))[1])
        assert max(high for _, high in outline(root, device, "second")) <= height + 0.01
    assert not list(
        strip_root(run(schedule="zb_h1", devices=4), "activations").iterfind(f".//{SVG}path[@class='limit']")
    )


@pytest.mark.parametrize(("schedule", "chunks"), [("1f1b", 2), ("gpipe", 2), ("zb_v", 2), ("interleaved_1f1b", 8)])
def test_the_size_of_strips_is_bounded_by_their_pixels(schedule, chunks):
    result = run(example(schedule, 64, 1024 if chunks == 2 else 256, chunks=chunks, slow_factor=2))
    assert len(result.timeline.position) > 131_000
    for draw in STRIPS.values():
        assert len(draw(result, width=800, theme="light", language="en").svg) < 900_000


def ways_back(result):
    root = ElementTree.fromstring(result.svg(width=900))
    left, plot, end = (float(root.get(f"data-{key}")) for key in ("left", "plot", "end"))
    lines = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "return"]
    points = [re.match(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", line).groups() for line in lines]
    return [((float(x) - left) / plot * end, (float(to) - left) / plot * end) for x, _, to, _ in points]


def test_decoding_shows_how_each_token_of_the_first_stream_comes_back():
    """One stream on 3 devices returns at 3, 6, 9; with 4 streams stage 1 is free for it only at 4, 8, 12."""
    assert ways_back(run(schedule="decode", devices=3, micro_batches=1)) == [
        (pytest.approx(at, abs=0.01), pytest.approx(at, abs=0.01)) for at in (3, 6, 9)
    ]
    assert ways_back(run(schedule="decode", devices=3, micro_batches=4)) == [
        (pytest.approx(end, abs=0.01), pytest.approx(start, abs=0.01)) for end, start in ((3, 4), (7, 8), (11, 12))
    ]
    assert not ways_back(run(schedule="decode", devices=1)), "one device has no way back"
    assert not ways_back(run(schedule="decode", devices=8, micro_batches=8, tokens=8)), "too many to be told apart"
    assert not ways_back(run(schedule="forward"))


def test_blocks_of_decoding_carry_stream_and_token_and_change_shade_with_the_token():
    root = ElementTree.fromstring(run(schedule="decode", devices=2, micro_batches=2, tokens=3).svg(width=900))
    blocks = [group for group in root.iter(f"{SVG}g") if group.get("class") == "op" and group.get("data-device") == "0"]
    assert [block.find(f"{SVG}text").text for block in blocks] == ["1.1", "2.1", "1.2", "2.2", "1.3", "2.3"]
    one, _, other, _, again, _ = (block.find(f"{SVG}rect").get("fill") for block in blocks)
    assert one != other
    assert one == again


WIDEST, GAPS, DENSE = (140, 0, 3_500_000), (140, 3, 1_000_000), (700, 0, 1_500_000)
SIZES = [(name, *WIDEST) for name in REGISTRY]
SIZES += [(name, *size) for name in ("forward", "1f1b", "zb_h1", "v_min", "dualpipe_v") for size in (GAPS, DENSE)]


@pytest.mark.parametrize(("schedule", "blocks", "comm", "most"), SIZES)
def test_the_size_of_a_chart_is_bounded_by_its_pixels(schedule, blocks, comm, most):
    """Largest where blocks and gaps can just be told apart; from there on, more operations make it smaller.

    ``blocks`` is about how many a lane of the widest chart holds: 140 are 5 pixels each.
    """
    small = run(example(schedule, 8, 16)).timeline.schedule
    micro_batches = max(1, blocks * 16 // max(map(len, small.rows)))
    result = run(example(schedule, 64, micro_batches, comm=comm))
    assert len(result.svg(width=800)) < most


def areas(root):
    """Sum the areas of the bars drawn, per device and kind: bars are ``M x y v h h w v -h z``."""
    total = defaultdict(float)
    for path in root.iter(f"{SVG}path"):
        if path.get("class") == "op":
            for bar in re.findall(r"v(-?[\d.]+)h([\d.]+)v", path.get("d")):
                total[int(path.get("data-device")), path.get("data-kind")] += -float(bar[0]) * float(bar[1])
    return total


@pytest.mark.parametrize("schedule", REGISTRY)
def test_a_dense_lane_is_filled_as_far_as_its_device_is_busy(schedule):
    """Levels are rounded to pixels: a kind may be off by a pixel of height, all kinds together by half of one."""
    result = run(example(schedule, 6, 256, comm="0.5", weight_grad="0.6", overlap="2"))
    timeline = result.timeline
    root = ElementTree.fromstring(result.svg(width=800))
    assert root.get("data-dense") is not None
    plot, block = float(root.get("data-plot")), float(root.get("data-block"))
    drawn = areas(root)
    for device, row in enumerate(timeline.schedule.rows):
        busy = defaultdict(int)
        for cell, start, end in zip(row, timeline.starts[device], timeline.ends[device], strict=True):
            for op in cell.ops:  # a pair is drawn as two halves
                busy[op.kind] += (end - start) / len(cell.ops)
        for kind, ticks in busy.items():
            assert drawn[device, kind] == pytest.approx(plot * block * ticks / timeline.end, abs=plot + 2 * block)
        whole = sum(area for (lane, _), area in drawn.items() if lane == device)
        assert whole == pytest.approx(plot * block * sum(busy.values()) / timeline.end, abs=plot / 2 + 2 * block)


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, bright = sorted(map(luminance, (one, other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", PALETTES)
def test_colours_have_the_contrast_that_wcag_asks_for(theme):
    palette = PALETTES[theme]
    assert contrast(palette.text, palette.page) >= 4.5
    assert contrast(palette.faint, palette.page) >= 4.5
    for kind, ink in palette.kinds.items():
        assert contrast(ink.text, ink.fill) >= 4.5, kind
        assert contrast(ink.text, ink.line) >= 4.5, kind
        assert contrast(ink.outline, palette.page) >= 3, kind


def test_the_second_chunk_and_the_second_direction_are_darker_and_can_still_be_read():
    for palette in PALETTES.values():
        for ink in palette.kinds.values():
            darker = deeper(ink)
            assert darker.fill != ink.fill
            assert contrast(darker.text, darker.fill) >= 3


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "zb_v", "dualpipe_v", "chimera", "dualpipe"])
def test_a_device_with_two_stages_or_directions_has_them_in_two_shades(schedule):
    scenario = example(schedule, 4, 8)
    timeline = run(scenario).timeline
    root, shades = ElementTree.fromstring(run(scenario).svg(width=1600)), defaultdict(set)
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "op":
            device, ops = int(group.get("data-device")), re.findall(r"(\d+)([FBIW])(\d+)", group.get("data-op"))
            for (stage, kind, _), part in zip(ops, group.findall(f"{SVG}rect"), strict=True):
                shades[device, kind, int(stage)].add(part.get("fill"))
    assert all(len(fills) == 1 for fills in shades.values())
    for device in range(timeline.schedule.devices):
        of_f = {fill for (home, kind, _), fills in shades.items() if (home, kind) == (device, "F") for fill in fills}
        assert len(of_f) == 2


def test_kinds_are_told_apart_without_colour():
    """Each kind has a pattern of its own; the forward alone has none."""
    for palette in PALETTES.values():
        patterns = [PATTERNS.get(kind) for kind in palette.kinds]
        assert len(set(patterns)) == len(patterns)
        assert all(ink.line != ink.fill for kind, ink in palette.kinds.items() if kind in PATTERNS)


@pytest.mark.parametrize(
    "settings",
    [
        {"forward": "0.001", "stage_times": ["0.001"], "devices": 1, "micro_batches": 1},
        {"forward": 1_000_000, "stage_times": [1_000_000], "devices": 1, "micro_batches": 1024, "slow_factor": 4},
        {"schedule": "gpipe", "input_grad": 0, "weight_grad": 0},
        {"devices": 64, "micro_batches": 1024, "schedule": "1f1b", "comm": "0.001"},
        {"schedule": "dualpipe", "devices": 2, "overlap": "0.001", "forward": 1_000_000},
        {"schedule": "zb_h1", "update": 1_000_000, "recompute": "early", "send": "blocking", "comm": 1_000_000},
        {"devices": 18, "stage_times": [f"{10**18 + n + 1}/{10**18 + n}" for n in range(1, 37, 2)]},
    ],
    ids=["shortest", "longest", "no backward time", "largest", "short pairs", "long updates", "incommensurable"],
)
def test_every_scenario_within_the_limits_can_be_drawn(settings):
    result = run(**settings)
    for width in (320, 800):
        ElementTree.fromstring(result.svg(width=width))
    assert result.text()


FIRST_VIEW = """\
Device 1  F1──F2──F3──F4──
Device 2  ····F1──F2──F3──F4──
Device 3  ········F1──F2──F3──F4──
          0                      6
"""


def test_the_first_view_in_a_terminal_is_this():
    assert run().text() == FIRST_VIEW


@given(scenarios())
def test_a_terminal_chart_has_a_line_per_device_and_all_fit(scenario):
    result = run(scenario)
    lines = result.text(width=100).splitlines()
    named = [line for line in lines if line.startswith("Device ")]
    assert len(named) == result.timeline.schedule.devices
    assert all(len(line) <= 100 for line in lines)


@given(scenarios())
def test_a_terminal_chart_not_to_scale_shows_what_runs_at_the_start_of_each_column(scenario):
    timeline = run(scenario).timeline
    *lines, _axis, note = run(scenario).text(width=40).splitlines()
    if not note.startswith("Not to scale"):
        return
    columns = int(re.search(r"each of the (\d+) columns", note)[1])
    for device, line in enumerate(lines):
        shown = line[10:].ljust(columns)
        for column in range(columns):
            tick = Fraction(column * timeline.end, columns)
            spans = zip(timeline.starts[device], timeline.ends[device], strict=True)
            works = any(start <= tick < end for start, end in spans)
            done = tick >= timeline.ends[device][-1]
            assert shown[column] in "· " if not works else shown[column] not in "· "
            assert works or (shown[column] == " ") == done


@given(scenarios())
def test_a_terminal_chart_to_scale_shows_each_device_as_busy_as_it_is(scenario):
    result = run(scenario)
    lines = result.text(width=200).splitlines()
    devices = result.timeline.schedule.devices
    if len(lines) > devices + 1:
        return  # it says that it is not to scale
    end = max(map(len, lines[:devices])) - 10  # the last to finish fills its line
    for line, share in zip(lines, result.metrics.utilisation, strict=False):
        busy = sum(letter not in "· " for letter in line[10:])
        assert busy / end == pytest.approx(share)


DEADLOCK = {"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"}


def test_a_deadlock_is_drawn_up_to_where_it_stops_and_what_each_device_stands_before():
    result, _ = read(DEADLOCK)
    root = ElementTree.fromstring(result.svg())
    groups = list(root.iter(f"{SVG}g"))
    assert [shown(group) for group in groups if group.get("class") == "op"] == [
        ("0F0", "0", "0", "1"),
        ("1F0", "1", "1", "2"),
    ]
    assert [group.get("data-stuck") for group in groups if group.get("class") == "stuck"] == ["0B0", "1F1"]
    assert [group.get("data-gap") for group in groups if group.get("class") == "gap"] == ["stuck", "waits"]


def test_a_deadlock_in_a_terminal_waits_to_the_end():
    result, _ = read(DEADLOCK)
    assert result.text().splitlines()[:2] == ["Device 1  F1──····", "Device 2  ····F1──"]
