"""The report as a reader sees it: drawn, hovered, by keyboard, in the dark, on a phone, on paper, without script."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import FIXTURES, Opened

Open = Callable[..., Opened]
STUDY = ["table-1", "fig-4", "fig-5", "speed-up-read", "speed-up-decode", "efficiency", "workers", "trace"]


def cells() -> dict[str, dict]:
    """The cells of the study's record by their ids."""
    lines = (FIXTURES / "chien/record.jsonl").read_text().splitlines()
    return {cell["id"]: cell for cell in map(json.loads, lines[1:])}


def marks(watched: Opened, figure: str, picture: str = "wide") -> list[dict[str, str]]:
    """The data of a figure's marks, each with whether it is seen."""
    return watched.page.eval_on_selector_all(
        f"#{figure} svg.{picture} .mark",
        """marks => marks.map(mark => ({...mark.dataset, seen: mark.getBoundingClientRect().width > 0 ? "yes" : "no"}))""",
    )


def test_every_figure_of_the_study_is_there_and_drawn(opened: Open) -> None:
    watched = opened("study")
    assert watched.page.eval_on_selector_all("figure", "figures => figures.map(figure => figure.id)") == STUDY
    for figure in STUDY[1:]:
        drawn = marks(watched, figure)
        assert drawn and all(mark["seen"] == "yes" for mark in drawn), figure
        for part in ["figcaption", "details table", ".tt"]:
            assert watched.page.query_selector(f"#{figure} {part}"), f"{figure} lacks {part}"
        assert watched.page.query_selector(f"#{figure} .number").text_content()


@pytest.mark.parametrize(("figure", "read_only"), [("fig-4", False), ("fig-5", True)])
def test_bars_are_the_records_values(opened: Open, figure: str, read_only: bool) -> None:
    drawn = {mark["cell"]: float(mark["value"]) for mark in marks(opened("study"), figure)}
    wanted = {
        id: cell["ingest"]["images_per_s"]
        for id, cell in cells().items()
        if cell["step"] == "ingest" and cell["ingest"]["read_only"] is read_only
    }
    assert drawn == wanted


def test_heights_of_bars_are_in_proportion(opened: Open) -> None:
    watched = opened("study")
    boxes = watched.page.eval_on_selector_all(
        "#efficiency svg.wide .mark",
        "marks => marks.map(mark => [Number(mark.dataset.value), mark.querySelector('rect').getBBox().height])",
    )
    (low, low_height), (high, high_height) = min(boxes), max(boxes)
    assert low_height / high_height == pytest.approx(low / high, rel=0.05)


def test_speed_ups_shares_and_ticks_are_the_records(opened: Open) -> None:
    watched, record = opened("study"), cells()
    for mark in marks(watched, "speed-up-read"):
        if "metric" not in mark:
            continue
        here = record[mark["cell"]]
        first = {**here["factors"], "threads": 1}
        base = next(cell for cell in record.values() if cell["factors"] == first)
        assert float(mark["value"]) == here["ingest"]["images_per_s"] / base["ingest"]["images_per_s"]
    published = [mark["published"] for mark in marks(watched, "speed-up-read") if "published" in mark]
    assert published == ["1.65", "1.95", "2.3", "7.8"]
    for mark in marks(watched, "workers"):
        assert float(mark["value"]) == record[mark["cell"]]["ingest"]["worker_time"][mark["activity"]]
    ticks = [mark for mark in marks(watched, "trace") if "time" in mark]
    assert len(ticks) == 150
    rows = (FIXTURES / "chien/samples.csv").read_text().splitlines()
    column = rows[0].split(",").index("disk.vda.read_bytes_per_s")
    for tick, row in list(zip(ticks, rows[1:], strict=True))[:60]:
        assert float(tick["values"].split()[0]) == pytest.approx(float(row.split(",")[column]) / 1e6, abs=1e-3)


def test_the_json_has_what_the_page_draws(opened: Open, pages: dict[str, Path]) -> None:
    drawn = [float(mark["value"]) for mark in marks(opened("study"), "fig-5")]
    report = json.loads((pages["study"].parent / "study-report.json").read_text())
    figure = next(figure for figure in report["runs"][0]["figures"] if figure["id"] == "fig-5")
    assert sorted(row["images_per_s"] for row in figure["data"]) == sorted(drawn)


def test_the_value_appears_on_hover_and_goes(opened: Open) -> None:
    page = opened("study").page
    bar = page.locator("#fig-4 svg.wide .mark").nth(3)
    bar.scroll_into_view_if_needed()
    bar.hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    value = float(bar.get_attribute("data-value"))
    assert tip.text_content().startswith(f"hdd, decode, 8 threads: {value:.0f} images/s")
    page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_marks_are_reached_by_keyboard(opened: Open) -> None:
    page = opened("study").page
    first = page.locator("#fig-4 svg.wide .mark").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if first.evaluate("mark => mark === document.activeElement"):
            break
    else:
        pytest.fail("Tab does not reach the first bar")
    page.keyboard.press("ArrowRight")
    second = page.locator("#fig-4 svg.wide .mark").nth(1)
    assert second.evaluate("mark => mark === document.activeElement")
    page.wait_for_function("() => !document.getElementById('tip').hidden")
    assert page.locator("#tip").text_content().startswith("hdd, decode, 2 threads")
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


def test_a_finger_shows_the_value(opened: Open) -> None:
    page = opened("study", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page
    bar = page.locator("#fig-4 svg.narrow .mark").nth(5)
    bar.scroll_into_view_if_needed()
    bar.tap()
    assert page.locator("#tip").text_content().startswith("ssd, decode, 2 threads")


@pytest.mark.parametrize("name", ["study", "probe", "ingest", "compared", "mini", "train"])
def test_a_phone_does_not_scroll_sideways(opened: Open, name: str) -> None:
    watched = opened(name, viewport={"width": 390, "height": 844}, device_scale_factor=2)
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 390
    sizes = watched.page.eval_on_selector_all(
        ".pictures svg.narrow text", "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize))"
    )
    shown = watched.page.eval_on_selector_all(
        ".pictures svg.narrow", "pictures => pictures.map(p => p.getBoundingClientRect().width / p.viewBox.baseVal.width)"
    )
    assert shown and min(shown) > 0.95, "letters keep their size"
    assert min(size for size in sizes if size > 8) >= 11
    assert not watched.page.locator(".pictures svg.wide").first.is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_texts_wrap_and_what_scrolls_shows_it(
    opened: Open, forebay: Callable[..., str], pages: dict[str, Path], width: int
) -> None:
    lines = (FIXTURES / "chien/record.jsonl").read_text().splitlines()
    head = json.loads(lines[0])
    head["spec"]["title"] = "long" * 40
    for reference in head["spec"]["reference"]:
        reference["source"] = "Section VII of the paper, " * 5
    folder = pages["study"].parent
    (folder / "long.jsonl").write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    forebay("report", folder / "long.jsonl", "--html", folder / "long.html")
    pages["long"] = folder / "long.html"
    page = opened("long", viewport={"width": width, "height": 844}).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.eval_on_selector("h1", "h1 => h1.scrollWidth <= h1.clientWidth"), "a long word is broken"
    room = page.eval_on_selector_all(".references td.w", "cells => cells.map(cell => cell.clientWidth)")
    assert room and max(room) < 500, "sources are wrapped"
    scrolls = page.eval_on_selector("table.references", "t => t.parentElement.scrollWidth > t.parentElement.clientWidth")
    assert scrolls == (width == 390)
    shadow = page.eval_on_selector("table.references", "t => getComputedStyle(t.parentElement).backgroundAttachment")
    assert "local" in shadow and "scroll" in shadow


@pytest.mark.parametrize("name", ["study", "probe", "compared", "mini", "train"])
def test_light_and_dark_are_both_legible(opened: Open, name: str) -> None:
    contrast = """selector => {
        const parse = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = colour => {
            const [r, g, b] = parse(colour).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const back = light(getComputedStyle(document.body).backgroundColor);
        return [...document.querySelectorAll(selector)].map(element => {
            const style = getComputedStyle(element);
            const front = light(element instanceof SVGElement ? style.fill : style.color);
            return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
        });
    }"""
    backgrounds = set()
    for scheme in ["light", "dark"]:
        page = opened(name, color_scheme=scheme).page
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for selector in ["p", "td", "th", "figcaption", "svg.wide .tk", "svg.wide .tt", "svg.wide .name"]:
            values = page.evaluate(contrast, selector)
            assert min(values, default=21) >= 4.5, f"{selector} in {scheme}"
        for mark in [".dot", ".a-compute", ".a-starve"]:
            values = page.evaluate(contrast, f"svg.wide {mark}")
            assert min(values, default=21) >= 3, f"{mark} in {scheme}"
    assert len(backgrounds) == 2


def test_it_prints(opened: Open, tmp_path: Path) -> None:
    page = opened("study", color_scheme="dark").page
    made = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert made.startswith(b"%PDF") and made.count(b"/Type /Page\n") + made.count(b"/Type /Page ") >= 4
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#fig-4 svg.wide").is_visible() and not page.locator("#fig-4 svg.narrow").is_visible()


@pytest.mark.parametrize("name", ["study", "processes", "mini"])
def test_tables_fit_on_paper_and_their_words_stay_whole(opened: Open, name: str) -> None:
    # A4 less its margins, at 96 dots an inch.
    page = opened(name, viewport={"width": 688, "height": 1000}).page
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == 688
    tables = "tables => tables.map(table => [table.scrollWidth, table.parentElement.clientWidth])"
    for table, room in page.eval_on_selector_all("table", tables):
        assert table <= room
    words = "cells => cells.filter(cell => cell.innerText.length > 8).map(cell => cell.clientWidth)"
    assert min(page.eval_on_selector_all("table.cells td.l, table.cells td.w", words), default=99) > 20


def test_it_is_whole_without_script(opened: Open) -> None:
    page = opened("study", java_script_enabled=False).page
    assert "Storage limits hdd" in page.inner_text(".verdict")
    titles = page.locator("#fig-4 svg.wide .mark title")
    assert titles.count() == 16
    assert page.locator("#fig-4 details table").count() == 1


def test_runs_side_by_side_have_a_word_for_every_cell(opened: Open, pages: dict[str, Path]) -> None:
    watched = opened("compared")
    report = json.loads((pages["compared"].parent / "compared-report.json").read_text())
    cells = report["comparisons"][0]["cells"]
    assert len(cells) == 2
    drawn = [(float(mark["value"]), mark["word"]) for mark in marks(watched, "compare-1")]
    assert drawn == [(cell["ratio"], cell["word"]) for cell in cells]
    assert watched.page.locator("h1").text_content() == "Comparison of 2 runs"


def test_a_path_of_markup_stays_text(opened: Open, forebay: Callable[..., str], pages: dict[str, Path]) -> None:
    record = json.loads((FIXTURES / "ingest.json").read_text())
    evil = "<script>document.title = 'taken'</script><img src='x.png'>"
    record["dataset"]["path"] = evil
    folder = pages["study"].parent
    (folder / "evil.json").write_text(json.dumps(record))
    forebay("report", folder / "evil.json", "--html", folder / "evil.html")
    pages["evil"] = folder / "evil.html"
    page = opened("evil").page
    assert page.locator("h1").text_content() == f"Ingest of {evil}"
    assert page.title() != "taken" and page.locator("img").count() == 0
