"""The report in a real browser, from disk: Debian's Chromium, driven by Playwright."""

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from made_up import DOMAINS, collected
from mario.lab.case import Case
from mario.lab.runs.execute import finish, load_data
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.lab.studies.collect import Collected, CollectedCase, collect
from mario.lab.studies.plan import Plan, PlannedCase
from mario.report import study_table, to_latex, to_markdown, write_report

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make integration does")

CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SHOTS = Path(__file__).parents[2] / "runs" / "screenshots"
EVIL = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
METHODS = ("erm", "grace", "mario")
SMALL = {"epochs": 1, "steps_per_epoch": 2, "checkpoints": 2, "hidden_channels": 8}


def real_study(folder: Path) -> Collected:
    """Three methods on the smallest graph, a few steps each."""
    where = Case.find("good-cbas", shift="concept")
    jobs = [Job(spec=RunSpec.plan(where, method, given=SMALL), label=method, paper=method) for method in METHODS]
    for job in jobs:
        finish(job.spec, load_data(job.spec), folder / job.folder_name, device="cpu")
    case = PlannedCase(case=where, jobs=tuple(jobs))
    plan = Plan(
        study="small", title="A small one", show=("table", "map"), reference="grace", subject="mario", cases=(case,)
    )
    return collect(plan, folder)


def made_study() -> Collected:
    return collected(
        {
            "good-cbas-concept": {"erm": [0.8, 0.81], "grace": [0.92, 0.93], "mario": [0.9, 0.91], "dgi": [None, None]},
            "webkb-concept": {"erm": [0.30, 0.31], "grace": [0.20, 0.21], "mario": [0.40, 0.41]},
        },
        settings={"tau": 0.2},
        environment={"torch": "2.13.0"},
        failed={("good-cbas-concept", "dgi"): "RuntimeError: out of memory"},
    )


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> list[Collected]:
    return [made_study(), real_study(tmp_path_factory.mktemp("runs"))]


@pytest.fixture(scope="module")
def report(studies: list[Collected], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "a report.html"
    return write_report(path, studies, title="A report", command="mario reproduce x")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium, which make integration does")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Opens the report in a window of its own; at the end there was no complaint, and no network was asked."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(path: Path = report, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else wrong.append(asked.url),
        )
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def rows_of(table: Any) -> list[str]:
    return table.locator("tbody tr:visible th").all_inner_texts()


def wide(page: Any) -> Any:
    return page.locator("#study-table-concept table.wide")


def the_map(page: Any) -> Any:
    found = page.locator("[data-map-of]").first
    found.scroll_into_view_if_needed()
    found.locator(".panel canvas").first.wait_for()
    page.evaluate(FRAMES)
    return found


def images(found: Any) -> list[str]:
    found.page.evaluate(FRAMES)
    return found.locator(".panel canvas").evaluate_all("all => all.map(canvas => canvas.toDataURL())")


def group_of(page: Any) -> dict[str, Any]:
    return json.loads(page.locator("#data").text_content())["maps"][0]


def lonely(one: dict[str, Any]) -> int:
    """The node that is farthest from its nearest neighbor, so that the pointer can mean no other."""
    spots = list(zip(one["x"], one["y"], strict=True))

    def apart(i: int) -> float:
        return min(math.dist(spots[i], spot) for j, spot in enumerate(spots) if j != i)

    return max(range(len(spots)), key=apart)


def spot(canvas: Any, one: dict[str, Any], i: int) -> tuple[float, float]:
    """Where a node is on a canvas that shows the whole map."""
    size = canvas.bounding_box()["width"]
    return size / 2 + (one["x"][i] / 1e4 - 0.5) * 0.94 * size, size / 2 - (one["y"][i] / 1e4 - 0.5) * 0.94 * size


def test_it_opens_from_disk_without_a_word(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.title() == "A report"
    heads = page.locator("h2").all_inner_texts()
    assert (heads[0], heads[-3:]) == (
        "What is here",
        ["The paper’s claims", "Every run", "How to read this, and its limits"],
    )
    assert page.locator(".panel canvas").count() == 3
    assert page.locator("figure svg").count() > 0


def test_a_click_sorts_and_the_third_gives_the_first_order_back(opened: Callable[..., Any]) -> None:
    table = wide(opened())
    head = table.locator("th[data-column='2']")
    assert rows_of(table) == ["erm", "grace", "mario", "dgi"]
    head.get_by_role("button").click()
    assert rows_of(table) == ["grace", "mario", "erm", "dgi"]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert rows_of(table) == ["erm", "mario", "grace", "dgi"], "what has no score stands last either way"
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert rows_of(table) == ["erm", "grace", "mario", "dgi"]
    assert table.locator("th[aria-sort]").count() == 0


def test_the_keyboard_sorts(opened: Callable[..., Any]) -> None:
    page = opened()
    table = wide(page)
    table.locator("th[data-column='0'] button").focus()
    page.keyboard.press("Enter")
    assert rows_of(table) == ["dgi", "erm", "grace", "mario"]
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert table.locator("th[data-column='1']").get_attribute("aria-sort") == "descending"
    assert table.locator("th[aria-sort]").count() == 1
    assert rows_of(table) == ["grace", "mario", "erm", "dgi"]


def test_methods_and_datasets_are_filtered(opened: Callable[..., Any]) -> None:
    page = opened()
    table = wide(page)
    page.get_by_role("searchbox", name="Methods").fill("mario, DGI")
    assert rows_of(table) == ["mario", "dgi"]
    assert "rows shown" in page.locator("#filter-status").inner_text()
    page.get_by_role("searchbox", name="Datasets").fill("webkb")
    assert table.locator("thead th:visible").all_inner_texts()[1].startswith("webkb")
    assert table.locator("tbody tr").nth(2).locator("td:visible").count() == 3, "two of webkb, and all cases"
    assert not page.locator("section.map").first.is_visible()
    page.get_by_role("searchbox", name="Methods").fill("nothing like it")
    assert page.locator("#filter-status").inner_text() == "no row matches"
    page.get_by_role("searchbox", name="Methods").fill("")
    page.get_by_role("searchbox", name="Datasets").fill("")
    assert rows_of(table) == ["erm", "grace", "mario", "dgi"]
    assert table.locator("tbody tr").first.locator("td:visible").count() == 5
    assert page.locator("section.map").first.is_visible()


def test_a_node_under_the_pointer_is_told(opened: Callable[..., Any]) -> None:
    page = opened()
    found, group = the_map(page), group_of(page)
    first, second = found.locator(".panel").nth(0), found.locator(".panel").nth(1)
    one = group["maps"][0]
    i = lonely(one)
    x, y = spot(first.locator("canvas"), one, i)
    first.locator("canvas").hover(position={"x": x, "y": y})
    tip = first.locator(".tip")
    tip.wait_for()
    told = tip.locator("b, span").all_inner_texts()
    sets = ["training", "ID validation", "ID test", "OOD validation", "OOD test"]
    right = "right" if one["prediction"][i] == group["y"][i] else "wrong"
    assert told == [
        f"node {group['node'][i]}",
        group["class_names"][group["y"][i]],
        f"color {group['domain'][i]}",
        sets[group["split"][i]],
        f"predicted {group['class_names'][one['prediction'][i]]}, {right}",
    ]
    other = group["class_names"][group["maps"][1]["prediction"][i]]
    assert second.locator(".said").inner_text().startswith(f"predicted {other}, "), (
        "the other method tells of the same node"
    )
    assert not second.locator(".tip").is_visible()
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_all_panels_zoom_and_move_together(opened: Callable[..., Any]) -> None:
    page = opened()
    found = the_map(page)
    canvas = found.locator(".panel canvas").first
    before = images(found)
    canvas.hover(position={"x": 20, "y": 20})
    page.mouse.wheel(0, -300)
    page.mouse.move(2, 2)
    zoomed = images(found)
    assert all(old != new for old, new in zip(before, zoomed, strict=True))
    canvas.focus()
    page.keyboard.press("ArrowRight")
    moved = images(found)
    assert all(old != new for old, new in zip(zoomed, moved, strict=True))
    page.keyboard.press("+")
    page.keyboard.press("-")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("0")
    assert images(found) == before
    page.keyboard.press("+")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 130, steps=4)
    held = images(found)
    page.mouse.up()
    page.mouse.move(2, 2)
    assert held != before
    found.get_by_role("button", name="Show the whole map").click()
    assert images(found) == before


def test_the_wheel_is_the_pages_where_there_is_nothing_to_zoom_out_of(opened: Callable[..., Any]) -> None:
    page = opened()
    found = the_map(page)
    found.locator(".panel canvas").first.hover(position={"x": 50, "y": 50})
    at = page.evaluate("scrollY")
    page.mouse.wheel(0, 200)
    page.wait_for_function("at => scrollY > at", arg=at)


def test_the_keyboard_goes_through_the_nodes(opened: Callable[..., Any]) -> None:
    page = opened()
    found, group = the_map(page), group_of(page)
    status = found.get_by_role("status")
    found.locator(".panel canvas").first.focus()
    page.keyboard.press("n")
    assert status.inner_text().startswith(f"node {group['node'][0]}, {group['class_names'][group['y'][0]]}, ")
    assert f"Predicted: erm: {group['class_names'][group['maps'][0]['prediction'][0]]}" in status.inner_text()
    page.keyboard.press("n")
    assert status.inner_text().startswith(f"node {group['node'][1]}, ")
    page.keyboard.press("p")
    page.keyboard.press("p")
    assert status.inner_text().startswith(f"node {group['node'][-1]}, ")
    last = status.inner_text()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        page.keyboard.press(f"Shift+{key}")
    assert status.inner_text() != last
    page.keyboard.press("Escape")
    assert status.inner_text() == ""


def test_colors_are_by_class_domain_set_or_error(opened: Callable[..., Any]) -> None:
    page = opened()
    found = the_map(page)
    seen = {images(found)[0]}
    legend = found.locator(".legend")
    names = {
        "domain": ["color 0", "color 1", "color 2", "color 3"],
        "split": ["training", "ID validation", "ID test", "OOD validation", "OOD test"],
        "error": ["right", "wrong"],
        "class": ["random graph", "middle", "bottom", "roof"],
    }
    for value, expected in names.items():
        found.get_by_label("Color by").select_option(value)
        assert legend.locator("button:visible").all_inner_texts() == expected
        seen.add(images(found)[0])
    assert len(seen) == 4
    before = images(found)
    entry = legend.get_by_role("button", name="middle")
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert images(found) != before
    entry.click()
    assert images(found) == before


def test_methods_are_chosen_side_by_side(opened: Callable[..., Any]) -> None:
    page = opened()
    found = the_map(page)
    found.get_by_label("erm", exact=True).uncheck()
    assert found.locator(".panel b").all_inner_texts()[:2] == ["grace", "mario"]
    found.get_by_label("grace", exact=True).uncheck()
    found.get_by_label("mario", exact=True).click()
    assert found.locator(".panel").count() == 1, "one panel is left"


def test_a_finger_taps_and_two_zoom(opened: Callable[..., Any]) -> None:
    page = opened(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    found, group = the_map(page), group_of(page)
    shown = found.locator(".panel b").all_inner_texts()[0]
    one = next(one for one in group["maps"] if one["label"] == shown)
    canvas = found.locator(".panel canvas").first
    canvas.scroll_into_view_if_needed()
    x, y = spot(canvas, one, lonely(one))
    canvas.tap(position={"x": x, "y": y})
    assert found.get_by_role("status").inner_text().startswith(f"node {group['node'][lonely(one)]}, ")
    assert canvas.evaluate("canvas => canvas.style.touchAction") == "pan-y"
    box = canvas.bounding_box()
    touch = page.context.new_cdp_session(page)
    before = images(found)

    def fingers(kind: str, apart: float) -> None:
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        points = [{"x": middle[0] + side * apart, "y": middle[1], "id": i} for i, side in enumerate((-1, 1))]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [] if kind == "touchEnd" else points})

    fingers("touchStart", 30)
    for apart in range(35, 90, 5):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    assert images(found) != before
    assert canvas.evaluate("canvas => canvas.style.touchAction") == "none", "one finger moves what is not seen whole"


def test_light_and_dark(opened: Callable[..., Any]) -> None:
    page = opened(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.get_by_role("button", name="Dark")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    dark = page.evaluate(ground)
    assert button.get_attribute("aria-pressed") == "true"
    assert dark != light
    button.click()
    assert page.evaluate(ground) == light
    other = opened(color_scheme="dark")
    assert other.evaluate(ground) == dark
    other.get_by_role("button", name="Dark").click()
    assert other.evaluate(ground) == light
    assert other.evaluate("localStorage.length") == 0


def saved(page: Any, name: str, within: Any = None) -> str:
    with page.expect_download() as download:
        (within or page).get_by_role("button", name=name, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_files_can_be_kept(opened: Callable[..., Any], studies: list[Collected]) -> None:
    page = opened()
    made = studies[0]
    part = page.locator("#study-table-concept")
    assert saved(page, "table, LaTeX", part) == to_latex(study_table(made))
    assert saved(page, "table, Markdown", part) == to_markdown(study_table(made))
    rows = list(csv.DictReader(io.StringIO(saved(page, "table, CSV", part))))
    assert [(row["case"], row["label"]) for row in rows][:2] == [
        ("good-cbas-concept", "erm"),
        ("good-cbas-concept", "grace"),
    ]
    runs = list(csv.DictReader(io.StringIO(saved(page, "runs, CSV", part))))
    assert len(runs) == 12
    assert runs[0] | {"label": "erm", "ood_test": "80", "settings.tau": "0.2", "environment.torch": "2.13.0"} == runs[0]
    everything = list(csv.DictReader(io.StringIO(saved(page, "all runs, CSV"))))
    assert len(everything) == 15
    assert {row["study"] for row in everything} == {"table-concept", "small"}
    points = list(csv.DictReader(io.StringIO(saved(page, "Coordinates of good-cbas-concept, CSV"))))
    assert len(points) == 3 * 700
    group = group_of(page)
    expected = {"label": "erm", "node": str(group["node"][5]), "class": str(group["y"][5])}
    expected |= {"x": str(group["maps"][0]["x"][5] / 1e4), "prediction": str(group["maps"][0]["prediction"][5])}
    assert points[5] | expected == points[5]


def test_runs_are_searched(opened: Callable[..., Any]) -> None:
    page = opened()
    part = page.locator("#runs")
    part.locator("summary").first.click()
    status = part.get_by_role("status")
    playwright.expect(status).to_have_text("15 of 15 runs")
    part.get_by_label("Search").fill("mario webkb tau=0.2")
    assert status.inner_text() == "2 of 15 runs"
    part.locator("li summary").first.click()
    playwright.expect(part.locator("li").first).to_contain_text("torch")
    playwright.expect(part.locator("li").first).to_contain_text(re.compile(r"ood_test4[01]\.0 %"))
    assert "faults" not in part.locator("li").first.inner_text(), "there are none"
    part.get_by_label("Search").fill("zzz")
    assert part.locator("li").count() == 0


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_only_boxes_scroll_sideways(opened: Callable[..., Any], width: int) -> None:
    page = opened(viewport={"width": width, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.evaluate(FRAMES)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#study-table-concept .scroll").first
    if width == 390:
        assert box.evaluate("box => box.scrollWidth > box.clientWidth"), "the table is wider and scrolls by itself"


def test_the_first_tab_skips_to_the_content(opened: Callable[..., Any]) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2


def test_without_scripts_it_can_be_read(opened: Callable[..., Any]) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("#study-table-concept table.wide").is_visible()
    assert "Without scripts" in page.locator("noscript").inner_text()
    assert page.locator("button:visible").count() == 0
    assert page.locator("input:visible").count() == 0


def test_print_is_dark_on_white_without_tools(opened: Callable[..., Any]) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    for part in (".filters", ".theme", ".tools", ".save"):
        assert not page.locator(part).first.is_visible()


def test_print_has_every_column_of_a_wide_table(opened: Callable[..., Any], tmp_path: Path) -> None:
    scores = {"erm": [0.80, 0.81], "grace": [0.92, 0.93], "mario": [0.90, 0.91], "mario w/o cmi, ad": [0.90, 0.91]}
    cases = [f"{name}-{shift}" for name in DOMAINS for shift in ("concept", "covariate", "no_shift")][:8]
    path = tmp_path / "wide.html"
    write_report(path, [collected(dict.fromkeys(cases, scores))], title="Wide", command="mario")
    page = opened(path)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1047, "height": 700})  # A4 across, without margins of 10 mm
    box = page.locator(".scroll:has(> .wide)").first
    assert box.locator("tbody tr").first.locator("th, td").count() == 18
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert box.evaluate("box => getComputedStyle(box).page") == "across"


def test_a_hostile_name_stays_a_name(opened: Callable[..., Any], studies: list[Collected], tmp_path: Path) -> None:
    made = collected({"good-cbas-concept": {EVIL: [0.8, 0.7], "grace": [0.9, 0.8]}}, title=EVIL, settings={EVIL: EVIL})
    real = studies[1]
    where = Case(EVIL, EVIL, EVIL, EVIL)
    jobs = [replace(run.job, label={"mario": EVIL}.get(run.job.label, run.job.label)) for run in real.cases[0].runs]
    jobs = [replace(job, spec=replace(job.spec, case=where)) for job in jobs]
    runs = [replace(run, job=job) for run, job in zip(real.cases[0].runs, jobs, strict=True)]
    planned = PlannedCase(case=where, jobs=tuple(jobs))
    evil = Collected(replace(real.plan, cases=(planned,), show=("map",)), [CollectedCase(planned, runs)])
    page = opened(write_report(tmp_path / "page.html", [made, evil], title=EVIL))
    found = the_map(page)
    found.locator(".panel canvas").first.focus()
    page.keyboard.press("n")
    page.locator("#runs summary").first.click()
    page.locator("#runs li summary").first.click()
    wide(page).get_by_role("button").nth(1).click()
    page.get_by_role("searchbox", name="Methods").fill("img")
    assert EVIL in rows_of(wide(page))
    assert EVIL in found.locator(".panel b").all_inner_texts()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0


CONTRAST = """() => {
  const parse = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length && (color.length < 4 || color[3] > 0)) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("svg, script, noscript, .sr")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.className} ${node.textContent.trim().slice(0, 40)}`);
  }
  return poor;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_and_controls_have_names(opened: Callable[..., Any], theme: str) -> None:
    page = opened(color_scheme=theme)
    the_map(page)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate(CONTRAST) == []
    nameless = """() => [...document.querySelectorAll("button, input, select, canvas[tabindex], a, [role=region]")]
      .filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length))
      .map((e) => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(nameless) == []


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_axe_finds_nothing(opened: Callable[..., Any], width: int, theme: str) -> None:
    page = opened(viewport={"width": width, "height": 844}, color_scheme=theme, bypass_csp=True)
    the_map(page)
    SHOTS.mkdir(parents=True, exist_ok=True)  # for people to look at
    page.screenshot(path=SHOTS / f"page-{width}-{theme}.png", full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((result) => result.violations)")
    told = [f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]
    assert told == []
