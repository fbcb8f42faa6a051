"""Workloads as a reader sees them: utilisation in both arithmetics, a run's steps and time, and what was left out."""

from collections.abc import Callable

import pytest
from conftest import Opened
from test_report import marks
from test_train import LOOKS

Open = Callable[..., Opened]


@pytest.mark.parametrize("name", ["workload", "processes"])
@pytest.mark.parametrize(("picture", "look"), LOOKS)
def test_every_figure_of_workloads_is_drawn(opened: Open, name: str, picture: str, look: dict) -> None:
    watched = opened(name, **look)
    figures = watched.page.eval_on_selector_all("figure", "figures => figures.map(figure => figure.id)")
    wanted = {"workload": ["time", "steps"], "processes": ["utilisation", "throughput", "time"]}[name]
    assert set(wanted) <= set(figures)
    for figure in wanted:
        drawn = marks(watched, figure, picture)
        assert drawn and all(mark["seen"] == "yes" for mark in drawn), figure
    wider = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, "the page is no wider than the window"


def test_both_arithmetics_are_drawn_for_every_number_of_processes(opened: Open) -> None:
    watched = opened("processes")
    drawn = marks(watched, "utilisation")
    values = {(mark["metric"], mark["cell"]): float(mark["value"]) for mark in drawn if "metric" in mark}
    for n in [1, 2, 3]:
        # Which of the two is greater is the machine's business where an epoch has so few steps.
        assert 0 < values["au_epoch", f"as-source/processes={n}"] <= 1
        assert 0 < values["au_dlio", f"as-source/processes={n}"]
    assert [mark["published"] for mark in drawn if "published" in mark] == ["0.8652"]
    assert not [mark for mark in marks(watched, "throughput") if "published" in mark], "that rate is of the full scale"


def test_what_was_left_out_and_what_is_emulated_is_said(opened: Open) -> None:
    said = opened("processes").page.locator("body").text_content()
    assert "Left out: 64 processes" in said
    assert "The reader of these runs is emulated" in said
    assert "1 published value is only valid at the full scale and not shown here." in said


def test_a_point_says_its_value_on_hover(opened: Open) -> None:
    page = opened("processes").page
    point = page.locator("#utilisation svg.wide .mark[data-metric=au_dlio]").last
    point.scroll_into_view_if_needed()
    point.hover()
    said = page.locator("#tip").text_content()
    assert "%" in said and "process" in said


def test_a_step_says_its_parts_on_hover(opened: Open) -> None:
    page = opened("workload").page
    step = page.locator("#steps svg.wide .mark").nth(2)
    step.scroll_into_view_if_needed()
    step.hover()
    said = page.locator("#tip").text_content()
    assert "compute" in said and "wait" in said and "barrier" in said
