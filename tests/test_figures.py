"""Figures for papers: their numbers are the Timeline's, their files are read by others, and nothing global changes."""

import io
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pypdf
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.image import imread, imsave
from matplotlib.patches import PathPatch

from pipesched import ScenarioError, figures, run
from pipesched.cli import main
from pipesched.figures import door
from pipesched.figures.blocks import BLOCK, HATCHES, PALETTE, SHADES, VECTORS, mixed
from pipesched.figures.paper import style
from pipesched.ink import PATTERNS
from pipesched.sweep import sweep
from pipesched.words import catalogue

GOLDEN = Path(__file__).parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"
SEVERAL = [
    {"schedule": "forward"},
    {"schedule": "gpipe", "stage_times": "1; 1.5; 1"},
    {"schedule": "interleaved_1f1b", "devices": 4, "micro_batches": 8, "comm": "0.25"},
    {"schedule": "zb_v", "devices": 4, "micro_batches": 8},
    {"schedule": "dualpipe", "devices": 4, "micro_batches": 10},
    {"schedule": "decode", "devices": 3, "micro_batches": 4},
]


def boxes(axes, gid):
    """Return the rectangles of an axes whose gid starts with ``gid``, as (start, end, lane, height)."""
    found = []
    for patch in axes.artists + axes.patches:
        if isinstance(patch, PathPatch) and (patch.get_gid() or "").startswith(gid):
            for corners in patch.get_path().vertices.reshape(-1, 5, 2)[:, :4]:
                (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
                found.append((x0, x1, round((y0 + y1) / 2, 9), round(y1 - y0, 9)))
    return Counter(found)


def pdf(figure):
    return pypdf.PdfReader(io.BytesIO(figures.encode(figure, "pdf")))


def pixels(figure, dpi=60):
    return imread(io.BytesIO(figures.encode(figure, "png", dpi)))[..., :3]


def tiles(image, side=6):
    """Return the mean colours of squares of an image."""
    high, wide = (length // side for length in image.shape[:2])
    return image[: high * side, : wide * side].reshape(high, side, wide, side, 3).mean(axis=(1, 3))


def written(figure):
    """Return the words that are drawn, but for the names of blocks, each with where it stands."""
    renderer, found = FigureCanvasAgg(figure).get_renderer(), []
    with style(figure.look):
        renderer.draw_text = lambda *_, mtext, **__: found.append(mtext)
        figure.draw(renderer)
        del renderer.draw_text
        return [(text.get_text(), text.get_window_extent(renderer)) for text in found if text.get_gid() != "name"]


@pytest.mark.parametrize("settings", SEVERAL, ids=lambda settings: settings["schedule"])
@pytest.mark.parametrize("colours", ["kind", "micro_batch"])
def test_blocks_stand_where_the_timeline_says(settings, colours):
    result = run(**settings)
    axes = figures.gantt(result, width="text", colours=colours).axes[0]
    expected = Counter()
    for device, op, start, end, _ in result.timeline.intervals:
        part = BLOCK / len(op.ops)
        for i in range(len(op.ops)):
            expected[start, end, round(device - BLOCK / 2 + (i + 0.5) * part, 9), round(part, 9)] += 1
    assert boxes(axes, "op-") == expected
    assert axes.get_xlim() == (0, result.metrics.makespan)
    time = result.timeline.costs.time
    gaps = [gap for device in range(result.timeline.schedule.devices) for gap in result.timeline.gaps(device)]
    assert boxes(axes, "gap") == Counter((time(g.start), time(g.end), g.device, round(BLOCK, 9)) for g in gaps)


def test_what_a_deadlock_leaves_is_drawn_as_far_as_it_came():
    from pipesched.run import read

    result, _ = read({"schedule": "order", "order": "0F0 0B0\n1B0 1F0"})
    assert result.deadlock
    figure = figures.gantt(result)
    assert sum(boxes(figure.axes[0], "op-").values()) == 1
    assert figures.comparison([result]).axes[0].get_title(loc="left")


def test_what_is_compared_shares_one_axis_of_time_and_says_makespan_and_bubble():
    results = [run(schedule=name, devices=4, micro_batches=8) for name in ("gpipe", "zb_h1")]
    figure = figures.comparison(results, width="acl-text")
    assert [axes.get_xlim() for axes in figure.axes] == [(0, 33), (0, 33)]
    places = [axes.get_position() for axes in figure.axes]
    assert places[0].x0 == places[1].x0 and places[0].x1 == places[1].x1 and places[0].y0 > places[1].y1
    # ZB-H1 with F = I = W = 1: 3M + K - 1 = 27, of which 24 are work
    assert figure.axes[1].get_title(loc="left") == "ZB-H1: time 27, bubble ≈\u00a011.1%"


@pytest.mark.parametrize("of", ["activations", "queues", "bytes"])
def test_profiles_rise_to_the_peaks_that_the_metrics_state(of):
    size = {"hidden_size": 1024, "sequence_length": 512, "heads": 16, "layers": 8}
    result = run(schedule="1f1b", devices=4, micro_batches=8, stage_times="1;2;1;1", **size)
    peaks = {
        "activations": result.metrics.peak_activations,
        "queues": result.metrics.peak_queue,
        "bytes": tuple(n * result.footprint.sizes.whole for n in result.metrics.peak_activations),
    }[of]
    figure = figures.profiles(result, of=of)
    for lane, peak in enumerate(peaks):
        (patch,) = [p for p in figure.axes[0].artists + figure.axes[0].patches if p.get_gid() == f"profile-{lane}"]
        up = lane + BLOCK / 2 - patch.get_path().vertices[:, 1].min()
        top = peak if of == "queues" and not lane else max(peaks[1:] if of == "queues" else peaks)
        assert up == pytest.approx(BLOCK * float(peak) / float(top or 1))


def test_bytes_are_refused_with_what_is_missing():
    with pytest.raises(ScenarioError) as caught:
        figures.profiles(run(schedule="1f1b"), of="bytes")
    assert caught.value.field == "of"


def test_the_bubble_of_gpipe_falls_as_its_closed_form_and_gaps_are_what_a_schedule_refuses():
    figure = figures.curves(run(devices=4).scenario, schedules=["gpipe", "dualpipe"], stops=[1, 2, 8, 16])
    lines = {line.get_gid(): line for line in figure.axes[0].lines}
    assert lines["curve-gpipe"].get_ydata() == pytest.approx([3 / (m + 3) for m in (1, 2, 8, 16)])  # (K-1)/(M+K-1)
    refused = np.isnan(np.array(lines["curve-dualpipe"].get_ydata(), dtype=float))
    assert list(refused) == [True, True, False, False]  # DualPipe wants M of at least 2K


def test_along_k_the_times_of_single_stages_are_left_out():
    scenario = run(schedule="gpipe", devices=3, micro_batches=6, stage_times="1;4;1", forward_times="1;2;1").scenario
    (line,) = figures.curves(scenario, axis="devices", schedules=["gpipe"], stops=[2, 5]).axes[0].lines
    assert line.get_ydata() == pytest.approx([(k - 1) / (6 + k - 1) for k in (2, 5)])


@pytest.mark.parametrize("width", [*figures.WIDTHS, 4.25])
def test_a_pdf_is_one_page_of_the_width_asked_for_with_its_fonts_inside(width):
    reader = pdf(figures.gantt(run(schedule="1f1b", devices=4, micro_batches=8), width=width))
    (page,) = reader.pages
    assert float(page.mediabox.width) / 72 == pytest.approx(figures.WIDTHS.get(width, width), abs=0.01)
    for font in page["/Resources"]["/Font"].values():
        inside = font.get_object()
        assert inside["/Subtype"] != "/Type3"
        descriptor = inside.get("/FontDescriptor") or inside["/DescendantFonts"][0].get_object()["/FontDescriptor"]
        assert "/FontFile2" in descriptor.get_object()
    assert "/CreationDate" not in reader.metadata and "schedule=1f1b" in reader.metadata.title


@pytest.mark.parametrize("font", ["sans", "serif", "times"])
def test_the_words_of_a_figure_are_text_in_its_pdf_and_polish_letters_are_there(font):
    text = pdf(figures.gantt(run(schedule="zb_h1"), width="text", font=font, language="pl")).pages[0].extract_text()
    assert "Urządzenie 3" in text and "I gradient wejścia" in text and "czas" in text


def test_a_png_has_the_pixels_that_width_and_resolution_make():
    figure = figures.gantt(run(), width="ieee-column", height=1.5)
    header = figures.encode(figure, "png", 200)[16:24]
    size = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert size == pytest.approx((200 * 252 / 72.27, 300), abs=1)


def test_an_svg_is_xml_as_wide_as_asked_for_and_needs_no_font():
    root = ElementTree.fromstring(figures.encode(figures.gantt(run(), width="neurips"), "svg"))
    assert root.tag == f"{SVG}svg" and root.get("width") == "396pt"
    assert not list(root.iter(f"{SVG}text")) and len(root.findall(f".//{SVG}g[@id='op-F']")) == 1


@pytest.mark.parametrize("format", figures.FORMATS)
def test_the_same_figure_is_the_same_bytes_whatever_day_it_is(format, monkeypatch):
    first = figures.encode(figures.gantt(run(schedule="1f1b")), format)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert figures.encode(figures.gantt(run(schedule="1f1b")), format) == first


def test_settings_of_the_process_neither_change_nor_show():
    plain = figures.encode(figures.gantt(run()), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True, "pdf.fonttype": 3}):
        before = dict(matplotlib.rcParams)
        assert figures.encode(figures.gantt(run()), "svg") == plain
        assert dict(matplotlib.rcParams) == before
        figure, file = figures.gantt(run()), io.BytesIO()
        figure.savefig(file, format="pdf")  # whoever saves in Matplotlib's own way
        assert b"/Type3" not in file.getvalue()


def test_pyplot_is_never_imported_nor_matplotlib_before_it_is_needed():
    program = (
        "import sys, pipesched, pipesched.cli, pipesched.web; assert 'matplotlib' not in sys.modules\n"
        "from pipesched import figures; figures.encode(figures.gantt(pipesched.run()))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": "app"})


def test_a_dense_schedule_keeps_its_letters_as_vectors_and_its_file_small():
    result = run(schedule="1f1b", devices=16, micro_batches=400)
    assert sum(map(len, result.timeline.starts)) > VECTORS
    figure = figures.gantt(result, width="text")
    assert sum(boxes(figure.axes[0], "op-").values()) == 16 * 400 * 2
    content = figures.encode(figure, "pdf")
    assert len(content) < 1_000_000
    (page,) = pypdf.PdfReader(io.BytesIO(content)).pages
    assert len(page.images) >= 1 and "Device 16" in page.extract_text()
    assert len(figures.encode(figure, "svg")) < 2_000_000


def test_kinds_differ_without_colour():
    """By a hatch each, forwards have none; where there is no room for hatches, by their grey."""
    assert len(set(HATCHES.values())) == len(HATCHES) and not HATCHES["F"]
    assert {kind for kind, hatch in HATCHES.items() if hatch} == set(PATTERNS)
    greys = []
    for kind, share in SHADES.items():
        ink = PALETTE.kinds[kind]
        greys.append(float(np.dot(to_rgb(mixed(ink.fill, ink.outline, share)), (0.299, 0.587, 0.114))))
    assert all(a - b > 0.04 for a, b in zip(sorted(greys)[1:], sorted(greys), strict=False)), greys


@pytest.mark.parametrize(
    "settings",
    [
        {"devices": 1, "micro_batches": 1},
        {"devices": 2, "micro_batches": 1, "stage_times": "1/1000; 1000000"},
        {"schedule": "gpipe", "devices": 64, "micro_batches": 2, "tensor": 8, "all_reduce": 1},
        {"schedule": "pipedream_2bw", "devices": 3, "micro_batches": 6, "update": 1},
    ],
)
def test_extremes_are_drawn(settings):
    result = run(**settings)
    for figure in (figures.gantt(result, height=0.5), figures.profiles(result), figures.profiles(result, of="queues")):
        assert pixels(figure, 50).std() > 0


def test_a_figure_shows_itself_in_a_notebook():
    assert figures.gantt(run())._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("language", ["en", "pl"])
@pytest.mark.parametrize(
    "look", [{"width": "column"}, {"width": "neurips", "font": "times"}, {"width": 7, "font": "serif"}]
)
def test_no_word_leaves_the_page_or_stands_on_another(language, look):
    result = run(schedule="zb_h1", devices=4, micro_batches=8, stage_times="1;2;1;1")
    drawn = [
        figures.gantt(result, language=language, **look),
        figures.comparison([result, run(schedule="dualpipe", devices=4, micro_batches=8)], language=language, **look),
        figures.profiles(result, language=language, **look),
        figures.curves(result.scenario, metric="makespan", language=language, **look),
    ]
    for figure in drawn:
        page, words = figure.bbox, written(figure)
        assert len(words) > 8
        for i, (said, place) in enumerate(words):
            inside = page.x0 <= place.x0 and place.x1 <= page.x1 and page.y0 <= place.y0 and place.y1 <= page.y1
            assert inside, said
            assert not [other for other, there in words[:i] if place.padded(-1).overlaps(there)], said


GOLDENS = {
    "gantt": lambda: figures.gantt(run(schedule="zb_h1", devices=3, micro_batches=5)),
    "comparison": lambda: figures.comparison(
        [run(schedule=name, devices=4, micro_batches=8) for name in ("gpipe", "dualpipe")], colours="micro_batch"
    ),
    "curves": lambda: figures.curves(run(devices=4).scenario),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_a_figure_looks_as_it_did(name):
    """Set UPDATE_GOLDEN=1 to write them anew. Means of tiles are compared: letters move a little."""
    drawn, file = pixels(GOLDENS[name]()), GOLDEN / f"figure-{name}.png"
    if os.environ.get("UPDATE_GOLDEN"):
        imsave(file, drawn)
    changed = file.with_stem(file.stem + "-changed")
    golden = imread(file)[..., :3]
    if golden.shape != drawn.shape or np.abs(tiles(golden) - tiles(drawn)).max() > 0.3:
        imsave(changed, drawn)
        pytest.fail(f"{name} looks different; see {changed.name} beside it, or set UPDATE_GOLDEN=1")
    changed.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "changes", [{"width": "a4"}, {"width": 0.2}, {"colours": "red"}, {"font": "comic"}, {"height": 99}]
)
def test_a_look_that_cannot_be_is_refused_by_name(changes):
    with pytest.raises(ScenarioError) as caught:
        figures.gantt(run(), **changes)
    assert [caught.value.field] == list(changes)


@pytest.mark.parametrize("more", ["gantt", "comparison --schedules gpipe,1f1b", "profiles --of queues", "curves"])
@pytest.mark.parametrize("format", ["pdf", "svg", "png"])
def test_the_command_line_writes_figures(tmp_path, more, format):
    file = tmp_path / f"figure.{format}"
    command = f"figure --schedule 1f1b --devices 4 --micro-batches 8 --lang pl --width 4,5 --kind {more} --out {file}"
    assert main(command.split()) == 0
    assert file.read_bytes().startswith({"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}[format])


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--out figure.gif", "--out"),
        ("--kind pie --out figure.pdf", "--kind"),
        ("--kind comparison --out figure.pdf", "--schedules"),
        ("--width wide --out figure.pdf", "--width"),
        ("--font-size big --out figure.pdf", "--font-size"),
        ("--kind curves --metric luck --out figure.pdf", "--metric"),
        ("--kind curves --schedules gpipe,luck --out figure.pdf", "--schedules"),
        ("--kind comparison --schedules gpipe,luck --out figure.pdf", "--schedule"),
        ("--kind profiles --of luck --out figure.pdf", "--of"),
        ("--out no/such/folder.pdf", "--out"),
    ],
)
def test_a_wrong_option_is_named(capsys, words, option):
    assert main(["figure", "--lang", "en", *words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"pipesched: {option}: ")


@pytest.mark.parametrize("language", ["en", "pl"])
def test_without_matplotlib_the_command_line_says_how_to_get_it(capsys, monkeypatch, language):
    for name in [name for name in sys.modules if name.startswith("pipesched.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("pipesched.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figure", "--lang", language, "--out", "figure.pdf"]) == 2
    said = capsys.readouterr().err
    assert "pip install pipesched[figures]" in said
    assert catalogue(language)["cli.no_matplotlib"][:20] in said


def test_the_readme_s_figures_are_drawn(tmp_path, monkeypatch):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(from pipesched import figures.*?)```", readme, re.DOTALL)
    (command,) = re.findall(r"^python3 app (figure [^#\n]*)", readme, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(program)
    assert main(command.split()) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"both.pdf", "zb.pdf"}


ASKED = {
    "settings": {"schedule": "1f1b", "devices": "4"}, "lang": "en", "format": "pdf", "kind": "gantt",
    "of": "activations", "axis": "micro_batches", "metric": "makespan", "width": "column", "colours": "kind",
    "letters": "pytorch", "font": "sans",
}  # fmt: skip


def test_the_page_gets_a_file_with_its_name_and_size():
    answer = json.loads(door.handle(json.dumps(ASKED)))
    content = b64decode(answer["file"])
    assert content == figures.encode(figures.gantt(run(schedule="1f1b", devices=4)), "pdf")
    assert (answer["name"], answer["type"]) == ("pipesched-1f1b-gantt.pdf", "application/pdf")
    assert answer["size"] == f"Saved, {round(len(content) / 1000, 1):g} kB."


def test_the_page_compares_with_what_is_pinned_and_is_told_what_does_not_work():
    alone = ASKED | {"kind": "comparison", "format": "svg"}
    assert "two schedules" in json.loads(door.handle(json.dumps(alone)))["problem"]
    pinned = json.loads(door.handle(json.dumps(alone | {"pinned": {"schedule": "gpipe", "devices": "4"}})))
    assert b"<!-- GPipe: time" in b64decode(pinned["file"])
    assert "problem" in json.loads(door.handle(json.dumps(ASKED | {"settings": {"devices": "0"}})))


GRID = sweep(
    {"schedule": ["gpipe", "dualpipe"], "devices": [3, 4], "micro_batches": [4, 8, 16]}, jobs=1,
    metrics=["makespan", "bubble_fraction_of_total", "peak_micro_batches"],
)  # fmt: skip


@pytest.mark.parametrize("metric", GRID.values)
@pytest.mark.parametrize(("x", "y"), [("micro_batches", "devices"), ("devices", "schedule"), ("schedule", "schedule")])
def test_a_heat_map_has_the_grid_s_numbers_where_its_axes_say(metric, x, y):
    figure = figures.heat_map(GRID, metric, x=x, y=y, fixed={"schedule": "dualpipe", "micro_batches": 8})
    axes = figure.axes[0]
    columns = [label.get_text() for label in axes.get_xticklabels()]
    assert columns == [str(value) for value in GRID.axes[x]]
    (mesh,) = axes.collections
    shown = mesh.get_array().filled(np.nan)
    assert shown.shape == (1 if x == y else len(GRID.axes[y]), len(columns))
    for (row, column), value in np.ndenumerate(shown):
        point = {"schedule": "dualpipe", "devices": 3, "micro_batches": 8, x: GRID.axes[x][column]}
        if x != y:
            point[y] = GRID.axes[y][row]
        expected = GRID.at(**point)[metric]
        assert value == expected or (np.isnan(value) and expected is None)


def test_what_a_heat_map_lacks_is_named():
    wrongs = {"metric": {"metric": "speed"}, "x": {"x": "chunks"}, "devices": {"fixed": {"devices": 7}}}
    for field, wrong in wrongs.items():
        with pytest.raises(ScenarioError) as caught:
            figures.heat_map(GRID, **{"x": "micro_batches", "y": "schedule", **wrong})
        assert caught.value.field == field
