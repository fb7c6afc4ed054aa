"""A drawing as PDF holds what the SVG does: read back with pypdf, which had no part in writing it."""

import io
import re
import xml.etree.ElementTree as ET
from itertools import product

import pytest
from pypdf import PdfReader
from pypdf.generic import ContentStream

from pipesched import run
from pipesched.helvetica import FONTS, Letters, glyph
from pipesched.ink import PALETTES
from pipesched.measuring import against
from pipesched.pdf import pdf
from pipesched.picture import picture
from pipesched.run import read
from pipesched.schedules import REGISTRY
from pipesched.svg import LETTERS
from pipesched.words import LANGUAGES
from scenarios import example

SVG = "{http://www.w3.org/2000/svg}"
GPIPE = {"schedule": "gpipe", "devices": 4, "micro_batches": 8}
TWO = run(devices=2, micro_batches=2)
MEASURED = "device,op,start,end\n0,0F0,0,1\n0,0F1,1.5,2.5\n1,1F0,1,2\n1,1F1,2.5,3.5\n"
CIRCLE = {"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1B1 1F0 1F1 1B0"}
EDGES = {
    "pinned": (run(**GPIPE), run(schedule="zb_h1")),
    "measured": (TWO, against(TWO, MEASURED)[0]),
    "tensor": (run(example("1f1b", 4, 8, tensor=2, all_reduce="1/3")), None),
    "decode": (run(schedule="decode", devices=4, micro_batches=2), None),
    "dense": (run(example("zb_h1", 8, 400)), None),
    "deadlock": (read(CIRCLE)[0], None),
    "rounded": (run(example("1f1b", 4, 8, forward="1/3")), None),
    "nothing happens": (read({"schedule": "order", "order": "0B0 0F0"})[0], None),
}


def opened(svg):
    """Read the PDF of a drawing, as strict as the reader can be."""
    return PdfReader(io.BytesIO(pdf(svg)), strict=True)


def operators(reader):
    stream = ContentStream(reader.pages[0].get_contents(), reader)
    return [operator.decode() for _, operator in stream.operations]


def check(svg):
    """Hold the PDF of a drawing against it: page, title, texts in their order, rectangles and patterns."""
    root, reader = ET.fromstring(svg), opened(svg)
    (page,) = reader.pages
    assert page.mediabox.lower_left == (0, 0)
    assert page.mediabox.upper_right == pytest.approx([float(root.get(key)) * 0.75 for key in ("width", "height")])
    assert reader.metadata.title == root.findtext(SVG + "title")
    texts = [node.text for node in root.iter(SVG + "text")]
    assert "".join(page.extract_text().split()) == "".join("".join(texts).split())
    drawn = operators(reader)
    assert drawn.count("Tj") == len(texts)
    rects, halos = list(root.iter(SVG + "rect")), [text for text in root.iter(SVG + "text") if text.get("paint-order")]
    round_ones = [rect for rect in rects if rect.get("rx")]
    twice = sum(rect.get("fill") != "none" and "stroke" in rect.keys() for rect in round_ones)  # noqa: SIM118
    assert drawn.count("c") == 4 * (len(round_ones) + twice)
    assert drawn.count("re") == len(rects) - len(round_ones) + len(halos)
    charts = root.findall(SVG + "svg") or [root]
    hatches = [{node.get("fill") for node in chart.iter() if "url(" in node.get("fill", "")} for chart in charts]
    assert len(page["/Resources"]["/Pattern"]) == sum(map(len, hatches))


@pytest.mark.parametrize("schedule", REGISTRY)
def test_every_drawing_of_every_schedule_is_held_in_full(schedule):
    result = run(example(schedule, 4, 6))
    check(picture(result))
    for language, theme, letters in product(LANGUAGES, PALETTES, LETTERS):
        pdf(picture(result, TWO, language=language, theme=theme, letters=letters, width=500))


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", EDGES)
def test_a_drawing_of_any_sort_is_held_in_full(case, language, theme):
    check(picture(*EDGES[case], theme=theme, language=language, letters="zero_bubble"))


def test_what_is_transparent_has_no_background():
    with_ground, without = (operators(opened(picture(run(**GPIPE), transparent=is_clear))) for is_clear in (0, 1))
    assert (with_ground.count("re"), without.count("re")) == (1, 0)


def test_polish_can_be_searched_and_copied():
    svg = picture(run(**GPIPE, forward="1/3"), run(**GPIPE), language="pl")
    text = opened(svg).pages[0].extract_text()
    assert "Urządzenie 1" in text and "Porcje (micro-batche) M: 8" in text and "≈" in text


def test_letters_end_where_they_are_anchored():
    """The ends of the names of devices, by the widths that the file itself names, lie where the SVG puts them."""
    svg = run(**GPIPE).svg(language="pl")
    reader = opened(svg)
    name = next(node for node in ET.fromstring(svg).iter(SVG + "text") if node.text == "Urządzenie 1")
    assert name.get("text-anchor") == "end"
    font = reader.pages[0]["/Resources"]["/Font"]["/F400"]
    codes = font["/Encoding"]["/Differences"]
    own = codes[0] + codes.index("/aogonek") - 1
    width = sum(font["/Widths"][(own if a == "ą" else ord(a)) - font["/FirstChar"]] for a in name.text)
    seen = []
    reader.pages[0].extract_text(visitor_text=lambda text, cm, tm, *_: seen.append((text.strip(), tm[4])))
    x = next(x for text, x in seen if text == name.text)
    assert x + width * 13 / 1000 == pytest.approx(float(name.get("x")), abs=0.01)


def test_the_widths_are_those_that_matplotlib_reads_in_the_published_metrics():
    data = pytest.importorskip("matplotlib").get_data_path()
    for i, font in enumerate(FONTS.values()):
        with open(f"{data}/fonts/pdfcorefonts/{font.name}.afm", encoding="latin-1") as file:
            lines = re.findall(r"^C (-?\d+) ; WX (\d+) ; N (\w+)", file.read(), re.MULTILINE)
        known = {name: int(width) for _, width, name in lines}
        ascii_names = {int(code): name for code, _, name in lines} | {39: "quotesingle", 96: "grave"}
        assert font.widths == tuple(known[ascii_names[code]] for code in range(32, 127))
        letters = "ąćęłńóśźżĄĆĘŁŃÓŚŹŻ×−–—…·≥≤√²„“”’µ≈\u00a0\u202fé"
        assert {name: known[name] for name, *_ in map(glyph, letters)} == {
            name: widths[i] for name, *widths in map(glyph, letters)
        }


def test_what_helvetica_lacks_is_drawn_as_something_else_and_copied_as_it_was():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 9" width="99" height="9"><title>a</title>{}</svg>'
    reader = opened(svg.format('<text x="1" y="9">≈ é 図 \N{GRINNING FACE}</text>'))
    names = reader.pages[0]["/Resources"]["/Font"]["/F400"]["/Encoding"]["/Differences"]
    assert list(names) == [128, "/asciitilde", "/e", "/question", "/question"]
    assert reader.pages[0].extract_text().strip() == "≈ é 図 \N{GRINNING FACE}"
    many = Letters().encoded("".join(map(chr, range(0x4E00, 0x4E00 + 200))))
    assert many == bytes(range(128, 256)) + b"?" * 72


def test_the_same_drawing_gives_the_same_bytes_and_no_date():
    svg = picture(run(**GPIPE))
    assert pdf(svg) == pdf(picture(run(**GPIPE)))
    assert b"Date" not in pdf(svg) and len(pdf(svg)) < len(svg)


def test_every_object_lies_where_the_table_says():
    file = pdf(picture(run(**GPIPE)))
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", file)[1])
    places = [int(place) for place in re.findall(rb"^(\d{10}) 00000 n $", file[start:], re.MULTILINE)]
    assert file[start:].startswith(b"xref\n0 %d\n" % (len(places) + 1))
    assert all(file[place:].startswith(b"%d 0 obj\n" % (i + 1)) for i, place in enumerate(places))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("<circle/>", "element 'circle'"),
        ('<rect width="1" height="1" transform="scale(2)"/>', "attribute 'transform' of 'rect'"),
        ('<rect width="50%" height="1"/>', "width '50%'"),
        ('<rect width="1" height="1" fill="red"/>', "colour 'red'"),
        ('<rect width="1" height="1" fill="url(#none)"/>', "pattern 'url(#none)'"),
        ('<path d="M0 0C1 1 2 2 3 3"/>', "path command 'C1 1 2 2 3 3'"),
        ('<path d="M0 0L1"/>', "path command 'L1'"),
        ('<path d="0 0"/>', "path '0 0'"),
        ('<text x="1" y="1" text-anchor="left">a</text>', "text-anchor 'left'"),
        ('<text x="1 2" y="1">ab</text>', "x '1 2'"),
        ('<text x="1" y="1">a<tspan>b</tspan></text>', "in 'text': 'tspan'"),
        ('<text x="1" y="1" stroke="#000000">a</text>', "a stroke over the fill of text"),
        ('<svg viewBox="0 0 1 1" width="2" height="2"/>', "viewBox '0 0 1 1'"),
    ],
)
def test_what_it_does_not_know_is_refused_by_its_name(part, said):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9">{part}</svg>'
    with pytest.raises(ValueError, match="unknown.*" + re.escape(said)):
        pdf(svg)
