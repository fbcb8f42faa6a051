"""Training as a reader sees it: run times with and without prefetch, steps, reads, sizes, and what a disk has to give."""

import json
from collections.abc import Callable

import pytest
from conftest import FIXTURES, Opened
from test_report import marks

Open = Callable[..., Opened]
MINI = ["fig-6", "fig-7", "fig-8", "time", "workers", "sizes", "disk", "need", "trace"]
TRAIN = ["time", "steps", "reads", "workers"]
LOOKS = [
    ("wide", {"color_scheme": "light"}),
    ("wide", {"color_scheme": "dark"}),
    ("narrow", {"viewport": {"width": 390, "height": 844}}),
]


def cells() -> dict[str, dict]:
    """The trained cells of the study's record by their ids."""
    lines = map(json.loads, (FIXTURES / "mini/record.jsonl").read_text().splitlines()[1:])
    return {cell["id"]: cell["train"] for cell in lines if "train" in cell}


@pytest.mark.parametrize(("name", "figures"), [("mini", MINI), ("train", TRAIN)])
@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_every_figure_of_training_is_drawn(opened: Open, name: str, figures: list[str], picture: str, look: dict) -> None:
    watched = opened(name, **look)
    assert watched.page.eval_on_selector_all("figure", "figures => figures.map(figure => figure.id)") == figures
    for figure in (f for f in figures if f != "disk"):
        drawn = marks(watched, figure, picture)
        assert drawn and all(mark["seen"] == "yes" for mark in drawn), figure


@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_a_bar_and_what_stands_on_it_are_the_two_run_times(opened: Open, picture: str, look: dict) -> None:
    watched, record = opened("mini", **look), cells()
    boxes = watched.page.eval_on_selector_all(
        f"#fig-6 svg.{picture} .mark",
        """marks => marks.map(mark => {
            const box = mark.querySelector('rect').getBBox();
            return {...mark.dataset, x: box.x, y: box.y, height: box.height};
        })""",
    )
    solid = {box["cell"]: box for box in boxes if box["metric"] == "wall_s"}
    more = [box for box in boxes if box["metric"] == "excess_s"]
    assert len(solid) == len(more) == 16
    a_second = {box["height"] / float(box["value"]) for box in solid.values()}
    assert max(a_second) / min(a_second) == pytest.approx(1, rel=0.02), "heights are in proportion"
    for box in more:
        below = solid[box["cell"].replace("prefetch=0", "prefetch=1")]
        assert float(below["value"]) == record[below["cell"]]["wall_s"]
        assert float(box["wall"]) == record[box["cell"]]["wall_s"]
        assert float(box["value"]) == pytest.approx(float(box["wall"]) - float(below["value"]))
        assert box["x"] == below["x"] and box["y"] + box["height"] == pytest.approx(below["y"], abs=0.2)
        assert box["height"] == pytest.approx(float(box["value"]) * max(a_second), abs=0.3)


@pytest.mark.parametrize("name", ["mini", "train", "saved", "saving", "bench", "workload", "processes"])
@pytest.mark.parametrize(("picture", "look"), LOOKS)
@pytest.mark.parametrize("font", ["inherit", "'DejaVu Sans'"])
def test_no_text_of_a_figure_is_cut_off_or_lies_on_another(
    opened: Open, name: str, picture: str, look: dict, font: str
) -> None:
    watched = opened(name, **look)
    # The widest font that a page falls back to, as if there were no other.
    watched.page.add_style_tag(content=f"figure {{ font-family: {font} }}")
    found = watched.page.evaluate(
        """picture => {
        const wrong = [];
        for (const svg of document.querySelectorAll(`figure:not(#trace) svg.${picture}`)) {
            const id = svg.closest('figure').id;
            const whole = svg.getBoundingClientRect();
            const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
            for (const [i, [text, a]] of texts.entries()) {
                if (a.left < whole.left - 1 || a.right > whole.right + 1 || a.top < whole.top - 1 || a.bottom > whole.bottom + 1)
                    wrong.push(`${id}: "${text}" is cut off`);
                for (const [other, b] of texts.slice(i + 1)) {
                    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                    if (across > 2 && down > 4) wrong.push(`${id}: "${text}" lies on "${other}"`);
                }
            }
        }
        return wrong;
    }""",
        picture,
    )
    assert found == []


def test_steps_say_their_values_on_hover(opened: Open) -> None:
    page = opened("train").page
    step = page.locator("#steps svg.wide .mark").nth(40)
    step.scroll_into_view_if_needed()
    step.hover()
    said = page.locator("#tip").text_content()
    assert said.startswith("steps 81 to 82, mean") and "compute" in said and "loss" in said


def test_the_mix_for_fio_can_be_selected(opened: Open) -> None:
    page = opened("mini").page
    lines = page.locator("#sizes pre code")
    assert lines.count() == 2
    assert lines.first.evaluate("code => getComputedStyle(code).fontFamily.includes('mono')")
    picked = lines.first.evaluate(
        "code => { const s = getSelection(); s.selectAllChildren(code); return s.toString(); }"
    )
    assert picked == "--bssplit=2k/1:4k/2:8k/4:16k/8:32k/13:64k/39:128k/32:256k/1"


def test_the_need_is_drawn_beside_what_was_published(opened: Open) -> None:
    watched = opened("mini")
    drawn = marks(watched, "need")
    assert [mark["published"] for mark in drawn if "published" in mark] == ["1000", "1300"]
    eight = {mark["cell"]: float(mark["value"]) for mark in drawn if mark.get("x") == "8"}
    files = cells()["feed/dataset=files"]
    wanted = 8 * files["batch"] / files["baseline"]["step_s"] * files["bytes"] / files["images"] / 1e6
    assert eight["feed/dataset=files"] == pytest.approx(wanted)
    assert watched.page.locator("#need details[open] table").is_visible()
