"""Prints the figures of a record of `forebay ingest` or `forebay train` on one line: `figures.py RECORD.json`."""

import json
import sys

cell = json.load(open(sys.argv[1]))["cells"][0]
runs = cell["samples"]
decoded = runs[-1].get("decoded_on_gpu")
wall = runs[-1]["wall_s"]
if "totals" in cell or "au_epoch" in cell:
    images, start = cell["images"] - (cell.get("start_images") or 0), cell.get("start_s") or 0
    steady = images / (cell["wall_s"] - start)
    baseline = cell.get("baseline")
    takes = cell["batch"] / baseline["step_s"] if baseline else float("nan")
    parts = ", ".join(f"{name[:-2]} {cell[name]:.2f}" for name in ["wait_s", "copy_s", "compute_s", "other_s"])
    line = f"{cell['images_per_s']:.0f} images/s, steady {steady:.0f}, without waiting {takes:.0f}; s: {parts}"
    line += f"; cores busy {cell['cpu_s'] / cell['wall_s']:.1f}; lever {cell['lever']['name']}"
else:
    line = f"{cell['images_per_s']:.0f} images/s; CPU s per 1,000 {cell['cpu_s_per_1000']:.2f}"
work = runs[-1].get("worker_time", {})
line += "; workers, s: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in work.items() if seconds >= 0.005 * wall)
if decoded:
    line += f"; GPU: {decoded['images']} images, {decoded['on_cpu']} on the CPU, s: " + ", ".join(
        f"{name[:-2]} {decoded[name]:.2f}" for name in ["upload_s", "kernels_s", "download_s"]
    )
print(line)
