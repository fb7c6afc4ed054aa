"""Our own ES modules go in, one script that needs no file beside it comes out.

Each module becomes a function that is called once and hands out what the module exports; they follow each other as they
import each other. That holds for what the house writes and nothing more: named imports at the start of a line from
modules in the same folder, named exports that are never assigned again, no circles. Anything else is refused.
"""

import re
from collections.abc import Iterable
from pathlib import Path

IMPORT = re.compile(r'^import\s+(?:(\{[^}]*\}|\*\s*as\s+\w+)\s+from\s+)?"\./([\w-]+\.js)";[^\S\n]*$', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const)\s+(\w+))", re.MULTILINE)
RENAMED = re.compile(r"(?<=\w)\s+as\s+(?=\w)")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`\\])//[^\n]*", re.DOTALL)
OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\s*\(.*", re.MULTILINE)
UNSAFE = re.compile(r"<!--|<(?=/?script)", re.IGNORECASE)
"""What would end, or change the reading of, a script inside HTML. It stands in strings, where it can be written so:"""
SAFE = "\\x3C"


class BundleError(ValueError):
    """A module uses what this bundler does not know: ``(module, text)``."""


def bundle(folder: Path, entries: Iterable[str]) -> str:
    """Join the modules ``entries`` of ``folder`` and all they import.

    Raises
    ------
    BundleError
        A module is written in a way this does not know, or modules import each other in a circle.
    """
    done: dict[str, str] = {}
    for entry in entries:
        _add(folder, entry, done, ())
    return "\n".join(done.values())


def variable(module: str) -> str:
    """Name the variable that holds what a module exports: ``chart.js`` has ``$chart``."""
    return "$" + re.sub(r"\W", "_", module.removesuffix(".js"))


def _add(folder: Path, module: str, done: dict[str, str], importers: tuple[str, ...]) -> None:
    if module in importers:
        raise BundleError(module, "imports itself, by way of " + ", ".join(importers))
    if module in done:
        return
    text = (folder / module).read_text(encoding="utf-8")
    for found in IMPORT.finditer(text):
        _add(folder, found[2], done, (*importers, module))
    done[module] = wrapped(module, text)


def wrapped(module: str, text: str) -> str:
    """Turn the text of a module into a function that is called at once.

    >>> print(wrapped("b.js", 'import { a as c } from "./a.js";\\nexport const b = 2 * c;\\n'))
    const $b = (() => {
    const { a: c } = $a;
    const b = 2 * c;
    return { b };
    })();
    """
    exports = EXPORT.findall(text)
    text = EXPORT.sub("", IMPORT.sub(_import, text))
    text = UNSAFE.sub(lambda found: SAFE + found[0][1:], text)
    if other := OTHER.search(COMMENT.sub("", text)):
        raise BundleError(module, other[0])
    return f"const {variable(module)} = (() => {{\n{text.strip()}\nreturn {{ {', '.join(exports)} }};\n}})();"


def _import(found: re.Match[str]) -> str:
    names, module = found[1], variable(found[2])
    if names is None:
        return ""
    if names.startswith("*"):
        return f"const {names.split()[-1]} = {module};"
    return f"const {RENAMED.sub(': ', names)} = {module};"
