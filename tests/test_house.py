"""The house rules: who imports whom, that page and library agree, that examples in docstrings run."""

import ast
import doctest
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from functools import cached_property
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import FunctionType
from urllib.parse import parse_qsl, urlsplit

import pytest

import pipesched
from pipesched.ink import PALETTES
from pipesched.notes import WITH_NOTE
from pipesched.presets import PRESETS
from pipesched.scenario import DEFAULTS, SETTINGS, Scenario
from pipesched.schedules import FAMILIES, REGISTRY
from pipesched.words import LANGUAGES, catalogue

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "app" / "pipesched"
MODULES = ["pipesched", *(found.name for found in pkgutil.walk_packages(pipesched.__path__, "pipesched."))]
LAZY = {"figures", "grid", "journal", "sweep"}
"""May import what is not in the standard library, and are imported by doors alone, when they are asked for."""
TOP = {"web", "cli", "cli_sweep"}
"""Doors to the outside; nothing inside knows of them."""

# What the lower floors may import of the library; those not named here may import anything but doors and lazy ones.
ALLOWED = {
    "model": set(),
    "rules": {"model"},
    "reading": set(),
    "scenario": {"model", "layers", "reading", "tensor"},
    "layers": {"model", "reading"},
    "batch": {"reading"},
    "tensor": {"reading"},
    "words": {"model"},
    "simulate": {"model", "rules"},
    "metrics": {"model", "rules"},
    "bounds": {"model", "scenario", "schedules"},
    "explain": {"model", "metrics"},
    "profiles": {"model", "metrics", "reading", "scenario"},
    "profile_svg": {"model", "frame", "ink", "profiles", "reading", "svg"},
    "strips": {"model", "frame", "ink", "profile_svg", "profiles", "reading", "run", "schedules", "words"},
    "notation": {"model"},
    "chrome": {"model", "notation", "reading"},
    "recording": {"model", "chrome", "notation", "reading"},
    "measured": {"model", "chrome", "notation", "reading", "recording", "rules", "scenario", "simulate"},
    "measuring": {"model", "causes", "compare", "explain", "measured", "reading", "run", "why", "words"},
    "notes": {"model", "scenario", "notation", "schedules", "metrics", "bounds"},
    "presets": {"model", "notation"},
    "picture": {"model", "compare", "frame", "ink", "presets", "run", "scenario", "svg"},
    "pdf": {"helvetica", "pdf_file"},
    "helvetica": set(),
    "pdf_file": set(),
    "report": {"model", "batch", "bounds", "run", "scenario", "schedules", "trade", "words"},
    "placement": {"model", "frame", "ink", "layers", "reading", "run", "words"},
    "trade": {"model", "metrics", "scenario", "schedules", "simulate", "tensor"},
    "lessons": {"model", "explain", "reading", "run", "words"},
    "text": {"model", "words"},
    "svg": {"model", "words", "explain", "frame", "ink"},
    "trace": {"model", "explain", "rules", "words"},
    "sources": {"model", "placement", "report", "run", "trade", "words"},
    "takeaway": {"model", "compare", "formats", "pdf", "picture", "report", "run", "words"},
    "formats": {"model", "markup", "notation", "pdf", "run", "scenario", "trace", "why"},
    "markup": {"model", "ink", "words"},
    "frame": {"model", "words", "ink"},
    "ink": set(),
    "show": {"model", "compare", "ink", "notation", "reading", "run", "simulate", "svg", "words"},
    "terminal": {"model", "ink"},
    "scenario_file": {"model", "scenario"},
    "watch": {"model", "words"},
    "grid": {"model", "metrics", "reading", "scenario", "show"},
    "journal": {"model", "grid"},
    "cli_sweep": {"model", "grid", "reading", "scenario", "sweep", "words"},
}
SCHEDULES = {"model", "scenario", "notation", "schedules"}


def short(module):
    return module.removeprefix("pipesched.")


def imports(module, inside_functions=True):
    """List what a module imports, as dotted names."""
    path = LIBRARY / (short(module).replace(".", "/") + ".py") if module != "pipesched" else LIBRARY / "__init__.py"
    path = path if path.is_file() else path.with_suffix("") / "__init__.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if inside_functions else tree.body
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            from_library = node.module == "pipesched"
            names |= {f"pipesched.{alias.name}" for alias in node.names} if from_library else {node.module}
    return names


def own(names):
    """Reduce dotted names to the library's modules: schedules.gpipe counts as schedules."""
    return {short(name).split(".")[0] for name in names if name.split(".")[0] == "pipesched"}


@pytest.mark.parametrize("module", MODULES)
def test_the_library_imports_the_standard_library_and_itself(module):
    packages = {name.split(".")[0] for name in imports(module)} - {"pipesched"}
    assert packages.isdisjoint({"js", "pyodide", "hosting"})
    if short(module).split(".")[0] not in LAZY:
        assert packages <= sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    name = short(module)
    found = own(imports(module, inside_functions=name != "model"))  # a Message shows itself with words, when asked
    if name.split(".")[0] == "schedules":
        assert found <= SCHEDULES
    elif name in ALLOWED:
        assert found <= ALLOWED[name]
    assert found.isdisjoint(TOP) or (name, found & TOP) == ("cli", {"cli_sweep"})
    if name in TOP:
        assert own(imports(module, inside_functions=False)).isdisjoint(LAZY)
    elif name.split(".")[0] not in LAZY:
        assert found.isdisjoint(LAZY)


def test_only_what_shows_itself_reaches_up_from_the_model():
    assert own(imports("pipesched.model")) <= {"words", "show"}


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module):
    assert doctest.testmod(import_module(module), verbose=False).failed == 0


# What people call from their own programs, besides all of `pipesched.__all__`.
CALLED = [
    "sweep.sweep", "grid.Grid", "metrics.Metrics", "bounds.Theory", "schedules.arrange", "notation.parse",
    "notation.write", "notation.write_csv", "svg.draw", "text.draw", "compare.differences", "causes.totals",
    "critical.critical_path", "critical.best_gain", "batch.optimum", "run.read", "scenario_file.settings", "web.handle",
    "cli.main", "pdf.pdf",
]  # fmt: skip


def test_all_that_is_public_says_what_it_is():
    for module in map(import_module, MODULES):
        assert module.__doc__
        for name, item in vars(module).items():
            if name.startswith("_") or getattr(item, "__module__", "") != module.__name__ or not callable(item):
                continue
            assert item.__doc__, (module.__name__, name)
            for part, member in vars(item).items() if inspect.isclass(item) else ():
                kinds = (property, cached_property, classmethod, FunctionType)
                assert part.startswith("_") or not isinstance(member, kinds) or member.__doc__, (name, part)


@pytest.mark.parametrize("name", [*pipesched.__all__, *CALLED])
def test_what_people_call_has_an_example_that_runs(name):
    """That it runs, test_examples_in_docstrings_run says."""
    *place, called = name.split(".")
    item = getattr(import_module(".".join(["pipesched", *place])), called)
    assert ">>> " in item.__doc__


class Page(HTMLParser):
    """The page's elements, each with its attributes and the text directly in it."""

    VOID = frozenset({"meta", "link", "input", "img", "source", "br"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "within": list(self.open), **dict(attrs)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1]["tag"] == tag, f"</{tag}> closes <{self.open[-1]['tag']}>"
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data


PAGE = Page((ROOT / "index.html").read_text(encoding="utf-8")).elements
FIELDS = [e for e in PAGE if e["tag"] in ("input", "select", "textarea") and "name" in e]
NAMED = {e["name"]: e for e in FIELDS if not any(outer["tag"] == "dialog" for outer in e["within"])}
MARKED = [
    (element[mark], element["text"] if mark == "data-t" else element.get(attribute, element.get(other)))
    for element in PAGE
    for mark, attribute, other in (
        ("data-t", None, None),
        ("data-t-label", "aria-label", "label"),
        ("data-t-alt", "alt", None),
        ("data-t-placeholder", "placeholder", None),
        ("data-t-title", "title", None),
    )
    if mark in element
]


def test_the_page_s_form_is_the_scenario():
    assert set(NAMED) == set(SETTINGS)
    assert all(any(outer["tag"] == "form" for outer in element["within"]) for element in NAMED.values())


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.kind != "name"])
def test_a_field_of_the_form_has_the_default_and_the_limits_of_its_setting(name):
    field, setting = NAMED[name], SETTINGS[name]
    default = DEFAULTS[name]
    if setting.kind == "choice":  # the first option is the default, in the page as in Python
        options = [e["value"] for e in PAGE if e["tag"] == "option" and field in e["within"]]
        assert options == list(setting.options)
        assert default == options[0]
        return
    if setting.kind == "text":
        assert int(field["maxlength"]) == setting.high
        return
    assert field.get("value", "") == ("" if default is None else str(default))
    low, high = (field.get(key, field.get(f"data-{key}")) for key in ("min", "max"))
    assert (float(low), float(high)) == (float(setting.low), float(setting.high))


def test_the_selector_lists_the_registry_in_its_order_and_families():
    groups = [e for e in PAGE if e["tag"] == "optgroup"]
    assert [group["data-t-label"] for group in groups] == [f"family.{family}" for family in FAMILIES]
    options = [e for e in PAGE if e["tag"] == "option" and NAMED["schedule"] in e["within"]]
    assert [option["value"] for option in options] == list(REGISTRY)
    assert [option["value"] for option in options if "selected" in option] == [DEFAULTS["schedule"]]
    for option in options:
        assert option["within"][-1]["data-t-label"] == f"family.{REGISTRY[option['value']].family}"
        assert option["data-also"] == ", ".join(REGISTRY[option["value"]].synonyms)


def test_the_page_links_the_figures_of_the_papers():
    links = {e["data-preset"]: dict(parse_qsl(urlsplit(e["href"]).fragment)) for e in PAGE if "data-preset" in e}
    expected = {p.name: {k: str(v) for k, v in Scenario(**p.settings).changed().items()} for p in PRESETS}
    assert links == expected
    sources = [e["text"] for e in PAGE if e["tag"] == "cite" and any(o.get("id") == "presets" for o in e["within"])]
    assert sources == [preset.source for preset in PRESETS]


def test_every_schedule_has_its_words():
    for language in LANGUAGES:
        known = catalogue(language)
        for name in REGISTRY:
            assert f"schedule.{name}" in known
            assert f"schedule.{name}.idea" in known
        assert {key.split(".")[1] for key in known if re.fullmatch(r"schedule\.\w+\.note", key)} == set(WITH_NOTE)
        assert {f"preset.{preset.name}" for preset in PRESETS} == {key for key in known if key.startswith("preset.")}


@pytest.mark.parametrize(("key", "text"), sorted(set(MARKED)), ids=[key for key, _ in sorted(set(MARKED))])
def test_the_page_says_in_english_what_the_catalogue_says(key, text):
    assert re.sub(r"\s+", " ", text or "").strip() == catalogue("en")[key].replace("\n", " ")


def test_every_number_shown_is_a_metric_by_its_name():
    metrics = vars(pipesched.run().metrics)
    shown = [e for e in PAGE if e["tag"] == "output" and "name" in e]
    assert {e["name"] for e in shown} == {name for name, value in metrics.items() if not isinstance(value, tuple)}
    for element in shown:
        if "data-value" in element:
            assert float(element["data-value"]) == metrics[element["name"]]


def test_the_page_carries_the_library_s_version_and_the_first_schedule_s_source():
    assert next(e for e in PAGE if e["tag"] == "html")["data-version"] == pipesched.__version__
    assert next(e for e in PAGE if e.get("id") == "version")["text"] == pipesched.__version__
    assert next(e for e in PAGE if e["tag"] == "cite")["text"] == REGISTRY[DEFAULTS["schedule"]].source


def test_every_label_belongs_to_a_control_and_every_control_has_a_name():
    ids = [e["id"] for e in PAGE if "id" in e]
    assert len(ids) == len(set(ids))
    labels = {e["for"] for e in PAGE if e["tag"] == "label" and "for" in e}
    assert labels <= set(ids)
    for control in PAGE:
        if control["tag"] in ("input", "select", "textarea") and control.get("type") != "hidden":
            in_label = any(outer["tag"] == "label" for outer in control["within"])
            assert in_label or control.get("id") in labels or "aria-label" in control, control


def test_the_page_needs_no_inline_script_or_style_and_nothing_from_elsewhere():
    for element in PAGE:
        assert "style" not in element
        assert not any(name.startswith("on") for name in element)
        assert element["tag"] != "style"
        assert element["tag"] != "script" or "src" in element
        for name in ("src", "href", "srcset"):
            assert not re.match(r"(\w+:)?/", element.get(name, "")), element


def test_the_readme_s_commands_and_python_run(tmp_path):
    """Those that end by themselves; `python3 app` and `python3 tests` are what runs this."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 app ((?:run|list|sweep|figure)[^#\n]*)", readme, re.MULTILINE)
    programs = re.findall(r"```python\n((?:import|from) pipesched.*?)```", readme, re.DOTALL)
    assert (len(commands), len(programs)) == (8, 3)
    (tmp_path / "my.toml").write_text("devices = 4")
    calls = [[sys.executable, str(ROOT / "app"), *shlex.split(command)] for command in commands]
    calls += [[sys.executable, "-c", program] for program in programs]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "app")}
    for call in calls:
        before = set(tmp_path.iterdir())
        answer = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert answer.returncode == 0 and (answer.stdout or set(tmp_path.iterdir()) > before), answer.stderr
    assert "python3 app " in readme and "python3 tests" in readme
    assert f"pipesched-{pipesched.__version__}-py3-none-any.whl" in readme


def test_page_and_drawing_have_the_same_colours():
    sheet = (ROOT / "static/css/page.css").read_text(encoding="utf-8")
    for palette in PALETTES.values():
        for kind in palette.kinds:
            ink = palette.kinds[kind]
            assert f"--{kind}: {ink.fill}; --{kind}-line: {ink.outline}; --{kind}-text: {ink.text};" in sheet
        assert f"--gap: {palette.gap}; --gap-line: {palette.gap_line};" in sheet


def test_the_version_stands_in_one_place_and_the_page_repeats_it():
    page = (ROOT / "index.html").read_text(encoding="utf-8")
    assert f'data-version="{pipesched.__version__}"' in page
    assert f'<span id="version">{pipesched.__version__}</span>' in page
