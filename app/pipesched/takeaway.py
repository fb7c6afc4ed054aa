"""What the share dialog of the page gives away: the chart as a picture or a PDF, and the result in any format."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from pipesched import formats, picture, report
from pipesched.compare import title
from pipesched.model import Message
from pipesched.pdf import pdf
from pipesched.run import Result
from pipesched.words import sentence

Answer = dict[str, Any]

MOST_SHOWN = 100_000
"""The most characters of a file that the page shows as well as saves."""


def take(result: Result, other: Result | None, asked: Mapping[str, Any]) -> Answer:
    """Return the chart to take away, with ``other``, a pinned one, above it as on the page."""
    language = asked["lang"]
    how: dict[str, Any] = {"width": asked["width"], "theme": asked["theme"], "language": language}
    how |= {"letters": asked.get("letters", "pytorch"), "transparent": asked["transparent"]}
    deadlock = result.deadlock and sentence(result.deadlock.message, language)
    svg = picture.picture(result, other, **how)
    if asked.get("as") == "pdf":
        return {"file": b64encode(pdf(svg)).decode()}
    return {
        "svg": svg,
        "thumbnail": picture.thumbnail(result.timeline, asked["theme"]),
        "words": deadlock or report.summary(result, language),
        "stem": picture.stem(result),
        "frame": sentence(Message("component.title", {"what": title(result, language)}), language),
        "open": sentence(Message("share.open_link"), language),
    }


def export(result: Result, asked: Mapping[str, Any]) -> Answer:
    """Return a file to take away; its text is empty, and a note says why, where a deadlock leaves none."""
    language, form = asked["lang"], formats.FORMATS[asked["as"]]
    stuck = bool(result.deadlock) and form.tells_the_end
    written = "" if stuck else form.write(result, language)
    text = written if isinstance(written, str) else b64encode(written).decode()
    long = sentence(Message("share.data.long", {"n": len(text)}), language) if len(text) > MOST_SHOWN else ""
    return {
        "text": text,
        "name": f"{picture.stem(result)}.{form.ending}",
        "type": form.media_type,
        "note": sentence(Message("share.data.stuck"), language) if stuck else long,
    }
