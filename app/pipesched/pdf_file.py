"""Objects go in, a PDF file comes out: streams, the table of where each object lies, numbers.

Syntax: ISO 32000-1:2008, "Document management: Portable document format".
"""

import zlib
from collections.abc import Sequence


def n(value: float) -> str:
    """Write a number with at most three decimals."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def stream(content: bytes, entries: str = "") -> bytes:
    """Return the object of a compressed stream, with ``entries`` in its dictionary (§7.3.8, §7.4.4)."""
    packed = zlib.compress(content, 9)
    head = f"<< {entries} /Length {len(packed)} /Filter /FlateDecode >>\nstream\n"
    return head.encode() + packed + b"\nendstream"


def file(objects: Sequence[bytes]) -> bytes:
    """Return the file with ``objects``, numbered from 1: the first is the catalogue, the fifth the title (§7.5)."""
    text, places = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for i, body in enumerate(objects):
        places.append(len(text))
        text += f"{i + 1} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return text + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()
