"""The chart, rendered by resvg, which shares no code with any browser: its pixels are the Timeline's."""

import io

import pytest
import resvg_py
from PIL import Image, ImageColor

from pipesched import run
from pipesched.frame import frame
from pipesched.ink import PALETTES, PATTERNS, deeper
from pipesched.picture import picture
from pipesched.svg import seconds
from scenarios import TRAINED, example

ZOOM = 3


def rendered(svg):
    return Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM)))).convert("RGB")


def off(pixel, colours):
    """Return how far a pixel is from the nearest of ``colours``, in steps of 255."""
    return min(max(abs(a - b) for a, b in zip(pixel, colour, strict=True)) for colour in colours)


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("schedule", [*TRAINED, "forward", "decode"])
def test_every_block_has_its_colour_where_the_timeline_has_it(schedule, theme):
    result = run(example(schedule, 4, 8))
    timeline, image = result.timeline, rendered(picture(result, width=1400, theme=theme))
    (_, place), second = frame(timeline, 1400, "en"), seconds(timeline)
    for op, (device, i) in timeline.position.items():
        cell, start, end = timeline.schedule.rows[device][i], timeline.starts[device][i], timeline.ends[device][i]
        if start == end:
            continue
        ink = PALETTES[theme].kinds[op.kind]
        ink = deeper(ink) if second(op) else ink
        colours = [ImageColor.getrgb(colour) for colour in (ink.fill, ink.line)[: 1 + (op.kind in PATTERNS)]]
        y = place.y(device) + cell.ops.index(op) * place.block / len(cell.ops) + 2.5  # above its name
        left, right = place.x(start) + 2, place.x(end) - 2
        row = [image.getpixel((round(ZOOM * (left + n * (right - left) / 9)), round(ZOOM * y))) for n in range(10)]
        near = sorted(off(pixel, colours) for pixel in row)
        assert near[2] <= 6, op  # the others may be on the edge of a hatch


def test_it_is_as_large_as_it_says():
    svg = run(schedule="gpipe").svg(width=720)
    image = rendered(svg)
    assert image.width == ZOOM * 720 and f'height="{image.height // ZOOM}' in svg
