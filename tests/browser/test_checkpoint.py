"""Checkpoints as a reader sees them: run times beside the one without, stalls, and what went to the tiers when."""

import json
from collections.abc import Callable

import pytest
from conftest import FIXTURES, Opened
from test_report import marks
from test_train import LOOKS

Open = Callable[..., Opened]
FIGURES = {
    "saved": ["fig-9", "fig-10", "all", "saves", "share", "time", "steps"],
    "saving": ["time", "steps", "checkpoints", "traffic", "reads", "workers"],
    "bench": ["stall", "saves", "ceiling", "restores"],
}
BURST = "checkpoints/checkpoint=optane → hdd"


def cells() -> dict[str, dict]:
    """The trained cells of the study's record by their ids."""
    lines = map(json.loads, (FIXTURES / "saved/record.jsonl").read_text().splitlines()[1:])
    return {cell["id"]: cell["train"] for cell in lines if "train" in cell}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_every_figure_of_checkpoints_is_drawn(opened: Open, name: str, picture: str, look: dict) -> None:
    watched = opened(name, **look)
    assert watched.page.eval_on_selector_all("figure", "figures => figures.map(figure => figure.id)") == FIGURES[name]
    for figure in FIGURES[name]:
        drawn = marks(watched, figure, picture)
        assert drawn and all(mark["seen"] == "yes" for mark in drawn), figure


@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_a_bar_is_a_run_and_its_top_the_time_it_stood_still(opened: Open, picture: str, look: dict) -> None:
    watched, record = opened("saved", **look), cells()
    boxes = watched.page.eval_on_selector_all(
        f"#fig-9 svg.{picture} .mark",
        """marks => marks.map(mark => {
            const box = mark.querySelector('rect, path').getBBox();
            return {...mark.dataset, x: box.x, y: box.y, height: box.height};
        })""",
    )
    walls = {box["cell"]: box for box in boxes if box.get("metric") == "wall_s"}
    tops = {box["cell"]: box for box in boxes if box.get("metric") == "checkpoint_s"}
    stalls = {box["cell"]: box for box in boxes if box.get("metric") == "stall_s"}
    saved = {name for name, cell in record.items() if cell.get("checkpoints")}
    assert set(walls) == set(tops) == set(stalls) == saved and len(saved) == 4
    for name, wall in walls.items():
        top, cell = tops[name], record[name]
        assert float(top["value"]) == cell["checkpoint_s"]
        assert float(stalls[name]["value"]) == cell["checkpoints"]["median_stall_s"]
        assert top["x"] == wall["x"] and top["y"] + top["height"] == pytest.approx(wall["y"], abs=0.2)
        share = top["height"] / (top["height"] + wall["height"])
        assert share == pytest.approx(cell["checkpoint_s"] / cell["wall_s"], abs=0.02)
    base = watched.page.locator(f"#fig-9 svg.{picture} line.limit").first
    a_second = walls[BURST]["height"] / (record[BURST]["wall_s"] - record[BURST]["checkpoint_s"])
    bottom = walls[BURST]["y"] + walls[BURST]["height"]
    without = record["checkpoints/checkpoint=none"]["wall_s"]
    assert bottom - float(base.get_attribute("y1")) == pytest.approx(without * a_second, rel=0.02)


@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_the_published_ratio_stands_where_the_stall_would_end(opened: Open, picture: str, look: dict) -> None:
    watched, record = opened("saved", **look), cells()
    published = [mark for mark in marks(watched, "fig-9", picture) if "published" in mark]
    assert [(mark["cell"], mark["published"]) for mark in published] == [(BURST, "2.6")]
    said = watched.page.locator(".verdict").inner_text()
    ratio = (
        record["checkpoints/checkpoint=hdd"]["checkpoints"]["median_stall_s"]
        / record[BURST]["checkpoints"]["median_stall_s"]
    )
    assert f"makes the stall per checkpoint {ratio:.2f}× shorter (published: 2.6×" in said


@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_draining_is_seen_behind_the_end_of_the_training(opened: Open, picture: str, look: dict) -> None:
    watched, cell = opened("saved", **look), cells()[BURST]
    ends = watched.page.eval_on_selector_all(
        f"#fig-10 svg.{picture} line.limit", "lines => lines.map(line => Number(line.getAttribute('x1')))"
    )
    assert len(ends) == 2 and ends[0] == ends[1], "a tier a panel, time alike in both"
    columns = [mark for mark in marks(watched, "fig-10", picture) if mark.get("tier") == "hdd" and "written" in mark]
    behind = [mark for mark in columns if float(mark["time"]) >= cell["wall_s"]]
    assert behind and max(float(mark["written"]) for mark in behind) > 100
    handles = [mark for mark in marks(watched, "fig-10", picture) if mark.get("tier") == "hdd" and "stall" in mark]
    assert [int(mark["step"]) for mark in handles] == [20, 40, 60, 80, 100]


def test_a_save_says_when_it_was_safe_where(opened: Open) -> None:
    page = opened("saving").page
    save = page.locator("#traffic svg.wide .mark:has(.save)").first
    save.scroll_into_view_if_needed()
    save.hover()
    said = page.locator("#tip").text_content()
    assert said.startswith("checkpoint after step 20, at ") and "durable on the last tier after" in said
    assert page.locator("#checkpoints details[open] table").is_visible()
