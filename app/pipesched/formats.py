"""A Result goes in, the text of a file comes out: what can be taken away, by name, for command line and page.

The JSON is written down in ``result.schema.json`` and carries the version of its form: ``load`` reads it back. The
other forms belong to others: PyTorch's orders (notation.py), Chrome's traces (trace.py), TikZ and Mermaid (markup.py).
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pipesched import why
from pipesched.markup import mermaid, tikz
from pipesched.model import ScenarioError
from pipesched.notation import write_csv
from pipesched.pdf import pdf
from pipesched.run import Result, run
from pipesched.scenario import SETTINGS, Scenario
from pipesched.trace import trace

NAME, VERSION = "pipesched.result", 1
"""What the JSON says of itself. The version grows when a reader of the one before would misread it."""


class Format(NamedTuple):
    """A form of file: how its name ends, its media type, and how a result is written in a language.

    One that ``tells_the_end`` needs a run that came to its end.
    """

    ending: str
    media_type: str
    write: Callable[[Result, str], str | bytes]
    tells_the_end: bool = True


def to_dict(result: Result) -> dict[str, Any]:
    """Return scenario, metrics, intervals, causes and critical path of ``result``: see ``result.schema.json``.

    >>> [*to_dict(run())]
    ['format', 'version', 'scenario', 'metrics', 'intervals', 'bubble', 'critical_path', 'what_if']
    """
    return {"format": NAME, "version": VERSION, **result.to_dict(), **why.to_dict(result)}


def to_json(result: Result, language: str = "en") -> str:
    """Return the same as text.

    >>> print(to_json(run(micro_batches=1))[:47])
    {
     "format": "pipesched.result",
     "version": 1,
    """
    return json.dumps(to_dict(result), indent=1) + "\n"


def load(text: str) -> Result:
    """Read what ``to_json`` wrote, and simulate it anew.

    Raises
    ------
    ScenarioError
        Where the text is something else or of another version (field ``scenario``), or names what is no setting.

    Examples
    --------
    >>> load(to_json(run(schedule="1f1b", stage_times="1 1/3 2"))).scenario
    Scenario(schedule='1f1b', stage_times='1,1/3,2')
    """
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError("scenario", "error.scenario_file", {"reason": str(error)}) from error
    known = given if isinstance(given, dict) else {}
    if (known.get("format"), known.get("version")) != (NAME, VERSION) or not isinstance(known.get("scenario"), dict):
        found = f"{known.get('format')} {known.get('version')}"
        raise ScenarioError("scenario", "error.result_version", {"given": found, "known": f"{NAME} {VERSION}"})
    for name in known["scenario"]:
        if name not in SETTINGS:
            raise ScenarioError(str(name), "error.unknown_field", {"given": str(name)})
    return run(Scenario(**known["scenario"]))


def to_python(result: Result, language: str = "en") -> str:
    """Return a few lines of Python that make ``result`` again.

    >>> print(to_python(run(schedule="1f1b", devices=4, micro_batches=8)))
    import pipesched
    <BLANKLINE>
    result = pipesched.run(schedule="1f1b", devices=4, micro_batches=8)
    print(result.metrics.makespan)  # 33
    <BLANKLINE>
    """
    changed = {name: json.dumps(value, ensure_ascii=False) for name, value in result.scenario.changed().items()}
    call = ", ".join(f"{name}={value}" for name, value in changed.items())
    if len(call) > 80:
        call = "\n" + "".join(f"    {name}={value},\n" for name, value in changed.items())
    makespan = result.metrics.makespan
    return f"import pipesched\n\nresult = pipesched.run({call})\nprint(result.metrics.makespan)  # {makespan}\n"


def to_trace(result: Result, language: str = "en") -> str:
    """Return the Chrome trace of ``result`` as JSON text, a unit shown as a millisecond.

    >>> to_trace(run(micro_batches=1)).startswith('{"traceEvents":')
    True
    """
    return json.dumps(trace(result.timeline, language=language), ensure_ascii=False, separators=(",", ":")) + "\n"


FORMATS: dict[str, Format] = {
    "json": Format("json", "application/json", to_json),
    "csv": Format("csv", "text/csv", lambda result, language: result.csv()),
    "trace": Format("trace.json", "application/json", to_trace),
    "order": Format("order.txt", "text/plain", lambda result, language: result.order() + "\n", False),
    "order-csv": Format("order.csv", "text/csv", lambda result, language: write_csv(result.timeline.schedule), False),
    "python": Format("py", "text/x-python", to_python),
    "tikz": Format("tex", "application/x-tex", lambda result, language: tikz(result.timeline, language=language)),
    "mermaid": Format("mmd", "text/plain", lambda result, language: mermaid(result.timeline, language=language)),
    "svg": Format("svg", "image/svg+xml", lambda result, language: result.svg(language=language)),
    "pdf": Format("pdf", "application/pdf", lambda result, language: pdf(result.svg(language=language))),
}
