"""<pipeline-schedule> in pages of other hosts: a still figure first, then a frame, one Python for all of them.

The frame is a stand-in (tests/data/stand_in.js) that speaks the protocol; only its formula is its own.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from site_server import serving
from test_page import Visit

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[1]
AWAKE = "[...document.querySelectorAll('pipeline-schedule')].every((one) => one.state)"
FRAMES = "[...document.querySelectorAll('pipeline-schedule')].map((one) => one.shadowRoot.querySelector('iframe'))"


@pytest.fixture(scope="module")
def simulator(tmp_path_factory) -> Iterator[object]:
    """A host with the script, its figures and a stand-in for the page."""
    folder = tmp_path_factory.mktemp("simulator")
    (folder / "static" / "js").mkdir(parents=True)
    shutil.copy(ROOT / "static/js/pipeline-schedule.js", folder / "static/js")
    shutil.copytree(ROOT / "static/figures", folder / "static/figures")
    shutil.copy(ROOT / "tests/data/stand_in.js", folder)
    page = (
        '<!doctype html><html lang="en"><title>stand-in</title><body><script src="stand_in.js"></script></body></html>'
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    with serving(folder, prefix="/a b/") as server:
        yield server


@pytest.fixture
def host(chromium, simulator, tmp_path) -> Iterator[object]:
    """Open a page of another origin, under a policy that allows no styles and no scripts of its own."""
    visits, servers = [], []

    def open_page(body, *, module=False, lang="en", **context) -> Visit:
        origin = simulator.url.removesuffix("/a%20b/")
        kind = 'type="module"' if module else "defer"
        script = f'<script {kind} src="{simulator.url}static/js/pipeline-schedule.js"></script>'
        start = f'<!doctype html><html lang="{lang}"><title>a course</title>'
        (tmp_path / "index.html").write_text(f"{start}{script if not module else ''}<body>{body}", encoding="utf-8")
        policy = f"default-src 'none'; script-src {origin}; frame-src {origin}; img-src {origin} data:"
        serves = serving(tmp_path, policy=policy)
        servers.append(serves)
        simulator.asked.clear()
        visits.append(Visit(chromium, serves.__enter__().url, **context))
        return visits[-1]

    yield open_page
    for visit in visits:
        visit.context.close()
    for server in servers:
        server.__exit__(None, None, None)
    assert [visit.complaints for visit in visits] == [[] for _ in visits]


def opened_frames(simulator):
    return [path for path in simulator.asked if "index.html" in path]


def element(**attributes):
    named = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<pipeline-schedule{named}></pipeline-schedule>"


def test_a_still_figure_stands_there_first_and_costs_one_picture(host, simulator):
    visit = host(element(schedule="gpipe", devices=4, micro_batches=8, wake="click"))
    image = visit.page.locator("pipeline-schedule img")
    assert image.get_attribute("alt") == "gpipe, devices: 4, micro-batches: 8"
    visit.until("document.querySelector('pipeline-schedule').shadowRoot.querySelector('img').naturalWidth === 480")
    assert [path.rpartition("/")[2] for path in simulator.asked] == ["pipeline-schedule.js", "gpipe-4x8.svg"]
    assert visit.page.locator("pipeline-schedule iframe").count() == 0


@pytest.mark.parametrize(("theme", "scheme"), [("dark", "light"), (None, "dark")])
def test_the_still_figure_is_dark_where_the_simulator_will_be(host, simulator, theme, scheme):
    visit = host(element(wake="click", **({"theme": theme} if theme else {})), color_scheme=scheme)
    visit.until("document.querySelector('pipeline-schedule').shadowRoot.querySelector('img').naturalWidth === 480")
    assert simulator.asked[-1].endswith("/figures/forward-3x4-dark.svg")


def test_a_scenario_without_a_figure_is_named_and_asks_for_none(host, simulator):
    visit = host(element(schedule="zb_v", devices=4, micro_batches=6, wake="click"), lang="pl")
    assert visit.page.inner_text("pipeline-schedule p") == "zb_v, urządzenia: 4, porcje: 6"
    assert visit.page.inner_text("pipeline-schedule button") == "Uruchom symulator"
    assert not [path for path in simulator.asked if path.endswith(".svg")]


def test_what_the_author_put_inside_is_the_figure(host):
    own = '<pipeline-schedule wake="click"><p id="own">My own drawing</p></pipeline-schedule>'
    visit = host(own)
    assert visit.page.is_visible("#own")
    assert visit.page.locator("pipeline-schedule img").count() == 0
    visit.page.click("#own")
    visit.until(AWAKE)
    assert not visit.page.is_visible("#own")


def test_it_wakes_on_a_key_and_focus_follows(host):
    visit = host(element(wake="click"))
    visit.page.focus("pipeline-schedule button")
    visit.page.keyboard.press("Enter")
    visit.until(AWAKE)
    assert visit.page.evaluate("document.activeElement.shadowRoot.activeElement.tagName") == "IFRAME"


def test_it_wakes_when_it_is_seen_and_takes_no_focus(host, simulator):
    spacer = "<p>text</p>" * 200
    visit = host(f"<button>mine</button>{spacer}{element()}")
    visit.page.focus("button")
    visit.page.wait_for_timeout(300)
    assert opened_frames(simulator) == []
    visit.page.evaluate("document.querySelector('pipeline-schedule').scrollIntoView()")
    visit.until(AWAKE)
    assert visit.page.evaluate("document.activeElement.textContent") == "mine"


def test_the_figure_stays_until_the_frame_has_something_to_show(host):
    visit = host(element(schedule="gpipe", tokens=9))
    state = "(([one]) => [one.dataset.state, one.shadowRoot.querySelector('iframe').inert])"
    of = "(document.querySelectorAll('pipeline-schedule'))"
    visit.page.wait_for_timeout(400)
    assert visit.page.evaluate(state + of) == ["waking", True]
    assert visit.page.is_visible("pipeline-schedule p")
    assert visit.page.inner_text("pipeline-schedule button") == "Starting …"
    visit.until(AWAKE)
    assert visit.page.evaluate(state + of) == ["awake", False]
    assert not visit.page.is_visible("pipeline-schedule p")


def test_where_data_is_dear_it_waits_for_a_click(host, simulator):
    visit = host("")
    visit.page.evaluate("Object.defineProperty(navigator, 'connection', { value: { saveData: true } })")
    visit.page.evaluate("document.body.append(document.createElement('pipeline-schedule'))")
    visit.page.wait_for_timeout(300)
    assert opened_frames(simulator) == []


def test_the_frame_opens_with_scenario_and_view_and_may_be_commanded_from_here_alone(host, simulator):
    view = {
        "lang": "pl",
        "theme": "dark",
        "mode": "slide",
        "hide": "steps,notes",
        "lock": "devices",
        "motion": "reduce",
    }
    visit = host(element(schedule="1f1b", devices=4, micro_batches=8, stage_times="1;2;1;1", **view))
    visit.until(AWAKE)
    source = visit.page.evaluate(f"{FRAMES}[0].src")
    before, fragment = source.split("#")
    assert before.startswith(simulator.url + "index.html?")
    query = set(before.split("?")[1].split("&"))
    own = visit.page.evaluate("location.origin")
    wanted = {"lang=pl", "theme=dark", "embed=slide", "hide=steps,notes", "lock=devices", "motion=reduce"}
    assert query == wanted | {f"api={own}"}
    # Micro-batches first: after an "&" that nobody escaped, HTML would read the sign µ.
    assert fragment == "micro_batches=8&schedule=1f1b&devices=4&stage_times=1%3B2%3B1%3B1"


def test_a_whole_link_can_be_given_and_attributes_win(host):
    link = "https://elsewhere.example/sim/?lang=pl&amp;theme=dark#micro_batches=8&amp;schedule=gpipe&amp;devices=4"
    visit = host(f'<pipeline-schedule scenario="{link}" micro-batches="6"></pipeline-schedule>')
    visit.until(AWAKE)
    source = visit.page.evaluate(f"{FRAMES}[0].src")
    assert "lang=pl&theme=dark" in source
    assert source.endswith("#micro_batches=6&schedule=gpipe&devices=4")


@pytest.mark.parametrize("module", [False, True])
def test_script_runs_as_classic_and_as_module_and_leaves_nothing_behind_but_the_element(host, simulator, module):
    visit = host(element(), module=module)
    if module:  # where the host of the script allows it to be read from elsewhere
        answer = (ROOT / "static/js/pipeline-schedule.js").read_text(encoding="utf-8")
        address = simulator.url + "static/js/pipeline-schedule.js"
        headers = {"access-control-allow-origin": "*", "content-type": "text/javascript"}
        visit.page.route(address, lambda route: route.fulfill(body=answer, headers=headers))
        visit.page.evaluate("(address) => import(address)", address)
    visit.until(AWAKE)
    known = visit.page.evaluate(
        "() => { const fresh = document.body.appendChild(document.createElement('iframe')).contentWindow;"
        "return Object.getOwnPropertyNames(window).filter((name) => !(name in fresh) && !/^\\d+$/.test(name)); }"
    )
    assert [name for name in known if "playwright" not in name.lower() and name != "0"] == []


def test_three_on_a_page_share_one_engine(host, simulator):
    visit = host("".join(element(devices=devices, micro_batches=8) for devices in (2, 3, 4)))
    visit.until(AWAKE)
    frames = opened_frames(simulator)
    assert len(frames) == 3
    assert sum("engine=host" not in path for path in frames) == 1
    assert visit.page.evaluate(
        "[...document.querySelectorAll('pipeline-schedule')].map((one) => one.state.numbers.makespan)"
    ) == [9, 10, 11]
    assert (
        visit.page.evaluate(
            "new Set([...document.querySelectorAll('pipeline-schedule')].map((one) => one.state.numbers.by)).size"
        )
        == 1
    )


@pytest.mark.parametrize("gone", ["server", "server, clients[0]"])
def test_when_the_one_that_serves_is_taken_away_another_takes_over(host, simulator, gone):
    visit = host("".join(element(devices=4, micro_batches=8) for _ in range(3)))
    visit.until(AWAKE)
    before = visit.page.evaluate("document.querySelector('pipeline-schedule').state.numbers.by")
    visit.page.evaluate(
        "const all = [...document.querySelectorAll('pipeline-schedule')];"
        "const serves = (one) => !one.shadowRoot.querySelector('iframe').src.includes('engine=host');"
        "const [server] = all.filter(serves), clients = all.filter((one) => one !== server);"
        f"[{gone}].forEach((one) => one.remove())"
    )
    after = visit.page.evaluate("document.querySelector('pipeline-schedule:last-of-type').set({ micro_batches: 5 })")
    assert after["numbers"]["makespan"] == 8
    assert after["numbers"]["by"] != before
    # Nobody was loaded anew for it, and the last to come is served too.
    assert len(opened_frames(simulator)) == 3
    visit.page.evaluate("document.body.append(document.createElement('pipeline-schedule'))")
    visit.until(AWAKE)
    assert "engine=host" in opened_frames(simulator)[-1]
    assert (
        visit.page.evaluate("document.querySelector('pipeline-schedule:last-of-type').state.numbers.by")
        == after["numbers"]["by"]
    )


def test_a_frame_that_is_loaded_anew_is_joined_again(host):
    visit = host(element(devices=2) + element(devices=3))
    visit.until(AWAKE)
    server = next(frame for frame in visit.page.frames if "api=" in frame.url and "engine=host" not in frame.url)
    server.evaluate("location.reload()")
    visit.page.wait_for_timeout(500)
    state = visit.page.evaluate("document.querySelectorAll('pipeline-schedule')[1].set({ micro_batches: 9 })")
    assert state["numbers"]["makespan"] == 11


def test_an_element_that_is_moved_goes_on_where_it_was(host):
    visit = host(f"<main>{element(devices=2)}{element(devices=4)}</main><aside></aside>")
    visit.until(AWAKE)
    visit.page.evaluate("document.querySelector('pipeline-schedule').set({ micro_batches: 7 })")
    visit.page.evaluate("document.querySelector('aside').append(document.querySelector('pipeline-schedule'))")
    visit.until("document.querySelector('aside pipeline-schedule').state?.numbers.makespan === 8")
    assert (
        visit.page.evaluate("document.querySelector('main pipeline-schedule').set({ micro_batches: 2 })")["numbers"][
            "makespan"
        ]
        == 5
    )


def test_attributes_and_properties_that_change_are_sent_and_changes_are_told(host):
    visit = host(element(schedule="gpipe", devices=4, micro_batches=8))
    visit.until(AWAKE)
    visit.page.evaluate(
        "window.told = []; addEventListener('change', ({ detail }) => told.push(detail.numbers.makespan))"
    )
    visit.page.evaluate("document.querySelector('pipeline-schedule').setAttribute('micro-batches', '16')")
    visit.until("told.at(-1) === 19")
    visit.page.evaluate("document.querySelector('pipeline-schedule').devices = 2")
    visit.until("told.at(-1) === 17")
    visit.page.evaluate("document.querySelector('pipeline-schedule').removeAttribute('micro-batches')")
    visit.until("told.at(-1) === 5")
    state = visit.page.evaluate("document.querySelector('pipeline-schedule').get()")
    assert state["settings"] == {"schedule": "gpipe", "devices": "2"}


def test_what_cannot_be_set_is_refused_with_the_field(host):
    visit = host(element())
    visit.until(AWAKE)
    problems = visit.page.evaluate(
        "document.querySelector('pipeline-schedule').set({ micro_batches: 0 })"
        ".catch(({ message, problems }) => [message, problems])"
    )
    assert problems == ["M is at least 1.", [{"field": "micro_batches", "text": "M is at least 1."}]]


def test_while_it_sleeps_it_says_what_it_would_show(host, simulator):
    visit = host(element(schedule="gpipe", wake="click"))
    state = visit.page.evaluate("document.querySelector('pipeline-schedule').set({ devices: 4, micro_batches: 8 })")
    assert state["settings"] == {"schedule": "gpipe", "devices": "4", "micro_batches": "8"}
    assert state["link"] == simulator.url + "index.html?lang=en#micro_batches=8&schedule=gpipe&devices=4"
    visit.until(
        "document.querySelector('pipeline-schedule').shadowRoot.querySelector('img')?.src.endsWith('/gpipe-4x8.svg')"
    )


def test_its_height_follows_its_own_frame_alone(host):
    visit = host(element() + element(theme="dark") + element(height=444))
    visit.until(AWAKE)
    assert visit.page.evaluate(f"{FRAMES}.map(({{ offsetHeight }}) => offsetHeight)") == [200, 300, 444]
    visit.page.evaluate("postMessage({ pipesched: 'height', height: 999 }, '*')")
    frame = next(frame for frame in visit.page.frames if "theme=dark" in frame.url)
    frame.evaluate("parent.postMessage({ pipesched: 'height', height: 350 }, '*')")
    visit.until(f"{FRAMES}[1].offsetHeight === 350")
    assert visit.page.evaluate(f"{FRAMES}.map(({{ offsetHeight }}) => offsetHeight)") == [200, 350, 444]


def test_keys_for_the_deck_of_slides_come_out_of_it(host):
    visit = host(element(mode="slide"))
    visit.until(AWAKE)
    visit.page.evaluate(
        "window.keys = []; document.addEventListener('keydown', ({ key, keyCode }) => keys.push([key, keyCode]))"
    )
    frame = next(frame for frame in visit.page.frames if "embed=slide" in frame.url)
    visit.page.evaluate("window.words = []; addEventListener('message', ({ data }) => words.push(typeof data))")
    for key in ("PageDown", "x", "PageUp", "ArrowLeft", "Escape"):
        frame.evaluate("(key) => dispatchEvent(new KeyboardEvent('keydown', { key }))", key)
    frame.evaluate("parent.postMessage(JSON.stringify({ method: 'triggerKey', args: [34] }), '*')")
    frame.evaluate("parent.postMessage('the last word', '*')")
    visit.until("words.includes('string')")
    assert visit.page.evaluate("keys") == [["PageDown", 34], ["PageUp", 33], ["ArrowLeft", 37], ["Escape", 27]]
    assert visit.page.evaluate("words.filter((kind) => kind === 'string').length") == 1  # reveal.js hears the key once


def test_another_theme_opens_the_frame_anew_with_what_it_showed(host, simulator):
    visit = host(element(devices=4))
    visit.until(AWAKE)
    visit.page.evaluate("document.querySelector('pipeline-schedule').set({ micro_batches: 9 })")
    visit.page.evaluate("document.querySelector('pipeline-schedule').theme = 'dark'")
    visit.until("document.querySelector('pipeline-schedule').state?.numbers.makespan === 12")
    assert "theme=dark" in opened_frames(simulator)[-1]


def test_a_simulator_that_does_not_answer_leaves_figure_and_link(host, simulator):
    script = (
        "document.body.append(Object.assign(document.createElement('pipeline-schedule'), { src: './', devices: 4 }))"
    )
    visit = host("")
    visit.page.evaluate(script)  # the page frames itself: there is no simulator, and its own policy forbids the frame
    visit.until("document.querySelector('pipeline-schedule').dataset.state === 'failed'")
    visit.complaints.clear()
    assert visit.page.is_visible("pipeline-schedule p a")
    assert visit.page.get_attribute("pipeline-schedule p a", "href").endswith("index.html?lang=en#devices=4")
