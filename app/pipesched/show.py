"""A value goes in, what a notebook shows of it comes out: HTML with drawing and numbers, and one line of text.

Jupyter and JupyterLite ask for the richest form that they can show (``_repr_html_``, ``_repr_svg_``), all others for
``repr``. The words are in the language of the environment.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from pipesched.compare import COMPARED, LARGEST
from pipesched.ink import PALETTES
from pipesched.model import Costs, DeadlockError, Message, Schedule
from pipesched.notation import write
from pipesched.reading import brief
from pipesched.run import Result
from pipesched.simulate import simulate
from pipesched.svg import draw
from pipesched.words import SHARES, environment_language, number, percent, sentence

MOST = 20_000
"""The most operations of an order that is simulated only to be shown."""
ROWS = 60
"""The most rows of a table that is shown."""


def settings_line(settings: Mapping[str, Any]) -> str:
    """Write settings as a call has them, long ones cut.

    >>> settings_line({"schedule": "1f1b", "devices": 4})
    "schedule='1f1b', devices=4"
    """
    return ", ".join(
        f"{name}={brief(value)!r}" if isinstance(value, str) else f"{name}={value}" for name, value in settings.items()
    )


def result_line(result: Result) -> str:
    """Return what ``repr`` says of a result.

    >>> from pipesched import run
    >>> run(schedule="1f1b", devices=4, micro_batches=8)
    <Result of schedule='1f1b', devices=4, micro_batches=8: makespan 33, bubble ≈ 27.3% of device time>
    """
    settings = settings_line(result.scenario.changed()) or "the first view"
    if result.deadlock:
        return f"<Result of {settings}: deadlock>"
    bubble = percent(result.metrics.bubble_fraction_of_total, "en").replace("\u202f", " ")
    return f"<Result of {settings}: makespan {result.metrics.makespan}, bubble {bubble} of device time>"


def result_html(result: Result) -> str:
    """Return chart and numbers of a result."""
    language = environment_language()
    parts = [result.svg(language=language)]
    if result.deadlock:
        parts.append(f"<p>{escape(sentence(result.deadlock.message, language))}</p>")
    else:
        rows = []
        for name in (*COMPARED, *LARGEST):
            value = getattr(result.metrics, name)
            label = sentence(Message(f"metric.{name}"), language)
            if name == "peak_micro_batches":  # elsewhere its own name stands beside that of the activations
                label = sentence(Message("curves.peak"), language)
            elif name in LARGEST:
                label = sentence(Message("compare.largest", {"what": label}), language)
            shown = max(value) if isinstance(value, tuple) else value
            rows.append((label, percent(shown, language) if name in SHARES else number(shown, language)))
        parts.append(table(rows))
    return _sheet(parts)


def schedule_html(schedule: Schedule) -> str:
    """Return an order drawn as if every forward, input and weight gradient took one unit of time, and as text."""
    language = environment_language()
    parts = [f"<p>{escape(repr(schedule).strip('<>'))}</p>"]
    if schedule.rows and sum(map(len, schedule.rows)) <= MOST:
        one = [1] * schedule.stages
        try:
            parts.append(draw(simulate(schedule, Costs.exact(one, one, one, update=one)), language=language))
        except DeadlockError as error:
            parts += [draw(error.timeline, language=language), f"<p>{escape(sentence(error.message, language))}</p>"]
    order = write(schedule)
    short = order if len(order) <= 4000 else order[:4000].rsplit(" ", 1)[0] + " …"
    return _sheet([*parts, f"<pre>{escape(short)}</pre>"])


def table(rows: Sequence[Iterable[str]], head: Iterable[str] = ()) -> str:
    """Return ``rows`` as an HTML table; of very many, the first.

    >>> table([("a", "1")])
    '<table><tbody><tr><td>a</td><td>1</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in [*rows[:ROWS], *([("…",)] if len(rows) > ROWS else [])]
    )
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if titles else ''}<tbody>{body}</tbody></table>"


def _sheet(parts: list[str]) -> str:
    """Lay drawing and words on a light ground of their own: the notebook around them may be dark."""
    palette = PALETTES["light"]
    style = f"background:{palette.page};color:{palette.text};padding:8px;overflow-x:auto"
    return f'<div style="{style}">{"".join(parts)}</div>'
