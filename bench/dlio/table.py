"""Figures with their goals, printed as they come."""

MB, GB = 1e6, 1e9


class Table:
    def __init__(self) -> None:
        self.rows: list[dict] = []
        print(f"{'figure':52} {'DLIO':>9} {'forebay':>9} {'ratio':>8}  goal")

    def add(self, what: str, dlio: float | None, ours: float | None, ratio=None, goal=None, is_met=None) -> None:
        left, middle = ("–" if value is None else f"{value:.3f}" for value in (dlio, ours))
        times = "–" if ratio is None else f"{ratio:.1f}×"
        verdict = "" if goal is None else f"{goal}: {'met' if is_met else 'MISSED'}"
        print(f"{what:52} {left:>9} {middle:>9} {times:>8}  {verdict}", flush=True)
        self.rows.append({"figure": what, "dlio": dlio, "forebay": ours, "ratio": ratio, "goal": goal, "met": is_met})
