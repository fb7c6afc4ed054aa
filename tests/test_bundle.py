"""The page in one file, looked at from outside: what is joined, what is refused, what its policy allows."""

import base64
import doctest
import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hosting import bundle, onefile
from hosting.bundle import BundleError
from hosting.report import HostingError
from pipesched.words import LANGUAGES, catalogue
from test_hosting import BYTES, LOCK, giving, runtime, silent

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "static" / "js"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of this checkout in one file, around a runtime as small as they come."""
    folder = tmp_path_factory.mktemp("one")
    onefile.build_one_file(folder / "page.html", LOCK, fetching(folder / "cache"))
    return folder / "page.html"


def fetching(cache: Path):
    return lambda files: runtime.fetch_runtime(files, cache, [giving(BYTES)], silent)


def test_examples_of_the_bundler_run():
    assert doctest.testmod(bundle, verbose=False) == (0, 1)


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)


def test_modules_stand_in_the_order_in_which_they_need_each_other_and_once(tmp_path):
    write(
        tmp_path,
        main='import { b } from "./b.js";\nimport {\n  c as d,\n} from "./c.js";\nimport "./e.js";\nb(d);\n',
        b='// @ts-check\nimport * as all from "./c.js";\nexport async function b() {}\n',
        c="export const c = 1;\nexport class C {}\n",
        e="/** @typedef {import('./c.js').C} C */\n",
    )
    text = bundle.bundle(tmp_path, ["main.js", "e.js"])
    assert re.findall(r"^const \$(\w+) =", text, re.MULTILINE) == ["c", "b", "e", "main"]
    assert "const {\n  c: d,\n} = $c;" in text and "const all = $c;" in text and "return { c, C };" in text
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    [
        "export default 1;",
        "export let a = 1;",
        "export { a };",
        'export * from "./b.js";',
        'import a from "./b.js";',
        'import { a } from "https://elsewhere.example/a.js";',
        'const a = await import("./b.js");',
    ],
)
def test_what_the_bundler_does_not_know_it_refuses(tmp_path, text):
    write(tmp_path, main=text, b="export const a = 1;")
    with pytest.raises(BundleError, match=r"main\.js"):
        bundle.bundle(tmp_path, ["main.js"])


def test_modules_that_import_each_other_in_a_circle_are_refused(tmp_path):
    write(tmp_path, a='import { b } from "./b.js";', b='import { a } from "./a.js";')
    with pytest.raises(BundleError, match="itself"):
        bundle.bundle(tmp_path, ["a.js"])


def test_what_would_end_a_script_in_html_is_written_otherwise(tmp_path):
    (tmp_path / "main.js").write_text('export const a = "<script></SCRIPT><!-- <b>";', encoding="utf-8")
    assert r'const a = "\x3Cscript>\x3C/SCRIPT>\x3C!-- <b>";' in bundle.bundle(tmp_path, ["main.js"])


def test_one_module_alone_asks_where_it_lies():
    """In one file there is no such place, so parts.js answers for all others."""
    asking = {path.name for path in SCRIPTS.glob("*.js") if "import.meta.url" in path.read_text(encoding="utf-8")}
    assert asking == {"parts.js"}


def elements(text, tag):
    return [(found[1], found[2]) for found in re.finditer(rf"<{tag}\b([^>]*)>(.*?)</{tag}>", text, re.DOTALL)]


def test_the_policy_of_the_one_file_allows_its_own_script_and_style_and_no_request(built):
    text = built.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    ((_, style),) = elements(text, "style")
    (script,) = [content for attributes, content in elements(text, "script") if 'type="module"' in attributes]

    def allowed(content):
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    assert directives == {
        "default-src": "'none'",
        "script-src": f"{allowed(script)} 'wasm-unsafe-eval'",
        "style-src": allowed(style),
        "worker-src": "blob:",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_the_one_file_carries_all_that_it_needs(built):
    text = built.read_text(encoding="utf-8")
    parts = dict(re.findall(r'<script type="[\w/]+" data-part="(.*?)">(.*?)</script>', text, re.DOTALL))
    packed = {name: content for name, content in parts.items() if not name.endswith(".json")}
    unpacked = {name: gzip.decompress(base64.b64decode(content)) for name, content in packed.items()}
    assert unpacked["pyodide/core.js"] == BYTES["core.js"] and unpacked["pyodide/core.wasm"] == BYTES["core.wasm"]
    assert unpacked["worker.js"] == (SCRIPTS / "worker.js").read_bytes()
    assert b"core.wasm" in unpacked["LICENSES.txt"] and b"six" not in unpacked["LICENSES.txt"]
    for language in LANGUAGES:
        assert json.loads(parts[f"locales/{language}.json"]) == catalogue(language)
    manifest = json.loads(parts["manifest.json"])
    assert manifest["files"]["pipesched.zip"]["size"] == len(unpacked["pipesched.zip"])
    assert set(parts) == {*manifest["files"], "manifest.json", "worker.js"}
    page = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r'\b(?:src|srcset|href)="(?!data:|[?#])[^"]*"', page)


def test_the_one_file_is_the_same_every_time_and_takes_the_place_of_its_own_kind_alone(built, tmp_path):
    fetch, again = fetching(tmp_path / "cache"), tmp_path / "page.html"
    again.write_text("<!doctype html><title>my thesis</title>")
    with pytest.raises(HostingError) as failure:
        onefile.build_one_file(again, LOCK, fetch)
    assert failure.value.message.key == "hosting.file_foreign"
    assert "thesis" in again.read_text()
    again.unlink()
    for _ in range(2):
        onefile.build_one_file(again, LOCK, fetch)
        assert again.read_bytes() == built.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "page.html"]


@pytest.mark.parametrize("target", [".", "index.html"])
def test_the_one_file_never_takes_the_place_of_the_page_itself(tmp_path, target):
    with pytest.raises(HostingError):
        onefile.build_one_file(ROOT / target, LOCK, fetching(tmp_path / "cache"))


def test_the_words_for_a_page_opened_as_a_file_stand_in_it_in_polish_too():
    page = (ROOT / "index.html").read_text(encoding="utf-8")
    assert f'<p lang="pl">{catalogue("pl")["load.file"]}</p>' in page


def test_building_nothing_is_a_usage_error():
    answer = subprocess.run([sys.executable, "app", "build"], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 2 and "--single-file" in answer.stderr
