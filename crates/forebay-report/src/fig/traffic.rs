//! What checkpoints wrote and read over time: a panel a tier, time alike in all, the draining after the end included.
//!
//! Written bytes are a filled area, read ones an outline on top. A band is a checkpoint for which training stood still, and
//! a dashed line the end of the training: what lies behind it is draining, which costs the run nothing.

use forebay_record::{SaveFate, StudyCell, TierTraffic, TrainCell, TrainCheckpoints};
use forebay_units::count;

use crate::number::{brief_seconds, listed, seconds, was};

use super::flows::{self, FILLED, Flow, Flows};
use super::{Columns, Context, Data, Drawn, Key, Pen, Tip, both, first, level, palette, quantity, saves};

const MAX_PANELS: usize = 8;

struct Tier<'a> {
    run: String,
    /// The tier, and the run where there are several.
    name: String,
    cell: &'a StudyCell,
    train: &'a TrainCell,
    saved: &'a TrainCheckpoints,
    traffic: &'a TierTraffic,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let all = panels(&cells, context.spec.x.as_deref());
    if all.is_empty() {
        return Drawn::nothing("No cell of this figure recorded its checkpoint traffic over time.");
    }
    let mut remarks = Vec::new();
    let shown = first(&all, MAX_PANELS, "panels", &mut remarks);
    remarks.extend(flows::means(&all));
    Drawn {
        data: data(&all),
        reading: [said(&all), reading(shown)].join(" ").trim().to_owned(),
        remarks,
        legend: legend(shown),
        pictures: both(&context.spec.title, |canvas| flows::plot(canvas, "MB per second", shown)),
        ..Drawn::default()
    }
}

fn panels<'a>(cells: &[&'a StudyCell], x: Option<&str>) -> Vec<Tier<'a>> {
    let sound = |traffic: &&TierTraffic| {
        let mut mb = traffic.written_mb.iter().chain(&traffic.read_mb);
        let any = !traffic.written_mb.is_empty() || !traffic.read_mb.is_empty();
        any && traffic.every_s > 0.0 && mb.all(|mb| mb.is_finite() && *mb >= 0.0)
    };
    let mut panels = Vec::new();
    for cell in cells.iter().filter(|cell| cell.error.is_none()) {
        let Some(train) = cell.measured_one::<TrainCell>().filter(|train| train.totals.wall_s.is_finite()) else {
            continue;
        };
        let Some(saved) = &train.checkpoints else { continue };
        let panel = |traffic: &'a TierTraffic| Tier {
            run: called(cells, cell, x),
            name: traffic.tier.clone(),
            cell,
            train,
            saved,
            traffic,
        };
        panels.extend(saved.traffic.iter().filter(sound).map(panel));
    }
    if runs(&panels).len() > 1 {
        for panel in panels.iter_mut().filter(|panel| panel.run != panel.name) {
            panel.name = format!("{}: {}", panel.run, panel.traffic.tier);
        }
    }
    panels
}

/// A run's level of the axis where that tells it from all others, else all of its levels.
fn called(cells: &[&StudyCell], cell: &StudyCell, x: Option<&str>) -> String {
    let of = |cell: &StudyCell| x.and_then(|x| Some(level::bare(x, cell.level(x)?)));
    let is_alone = cells.iter().filter(|other| of(other) == of(cell)).count() == 1;
    of(cell).filter(|_| is_alone).unwrap_or_else(|| level::all(&cell.factors))
}

fn runs<'a, 'b>(panels: &'b [Tier<'a>]) -> Vec<&'b Tier<'a>> {
    let mut runs: Vec<&Tier<'_>> = Vec::new();
    for panel in panels {
        if !runs.iter().any(|known| std::ptr::eq(known.cell, panel.cell)) {
            runs.push(panel);
        }
    }
    runs
}

/// How much went where, and how long draining went on: ours, whatever the caption says.
fn said(panels: &[Tier<'_>]) -> String {
    let runs = runs(panels);
    let several = runs.len() > 1;
    let wrote: Vec<String> = panels
        .iter()
        .filter(|_| !several)
        .map(|panel| {
            let mb: f64 = panel.traffic.written_mb.iter().sum();
            format!("{} MB were written to {}", quantity(mb), panel.traffic.tier)
        })
        .collect();
    let drained: Vec<String> = runs
        .iter()
        .filter_map(|run| {
            let after_s = run.saved.drain_after_s.filter(|seconds| *seconds > 0.0)?;
            let of = if several { format!(" ({})", run.run) } else { String::new() };
            Some(format!("{}{of}", brief_seconds(after_s)))
        })
        .collect();
    let has_tiers = panels.iter().any(|panel| panel.saved.burst.is_some() || panel.saved.traffic.len() > 1);
    let n_left: u64 = runs.iter().map(|run| run.saved.n(SaveFate::OnFast)).sum();
    let mut parts = Vec::new();
    if !wrote.is_empty() {
        parts.push(format!("In total, {}.", listed(&wrote)));
    }
    if !drained.is_empty() {
        parts.push(format!("Draining continued after the end of training for {}.", listed(&drained)));
    } else if has_tiers && n_left > 0 {
        let was = was(n_left);
        parts.push(format!("{} {was} left for the next start to drain.", count(n_left, "checkpoint")));
    } else if has_tiers {
        parts.push("Nothing was left to drain at the end of training.".to_owned());
    }
    parts.join(" ")
}

fn reading(panels: &[Tier<'_>]) -> String {
    let scales = match panels.len() {
        1 => "",
        _ if flows::own_scales(panels) => " Each panel has its own y-axis.",
        _ => " All panels have the same y-axis.",
    };
    format!("MB written to and read from the files of each tier, in the run nearest to the median.{scales}")
}

fn legend(panels: &[Tier<'_>]) -> Vec<Key> {
    let reads = panels.iter().any(|panel| panel.traffic.read_mb.iter().any(|mb| *mb > 0.0));
    let mut keys = vec![Key::swatch("ahead", "written")];
    keys.extend(reads.then(|| Key::line("tr c0l", "read")));
    keys.push(Key::swatch("still", "training stalls for a checkpoint"));
    keys.push(Key::line("limit", "end of training"));
    keys
}

impl Flows for Tier<'_> {
    fn title(&self, _: usize) -> &str {
        &self.name
    }

    fn flows(&self) -> Vec<Flow<'_>> {
        let traffic = self.traffic;
        let flow = |class: &str, mb| Flow { class: class.to_owned(), every_s: traffic.every_s, mb };
        let mut flows = vec![flow(FILLED, traffic.written_mb.as_slice())];
        flows.extend(traffic.read_mb.iter().any(|mb| *mb > 0.0).then(|| flow("outline c0l", &traffic.read_mb)));
        flows
    }

    fn until_s(&self) -> f64 {
        self.train.totals.wall_s
    }

    fn below(&self, pen: &mut Pen<'_>) {
        self.saved.saves.iter().for_each(|save| pen.band("still", save.at_s, save.at_s + save.stall_s));
    }

    /// A handle a checkpoint, and the end of the training.
    fn above(&self, pen: &mut Pen<'_>) {
        for save in &self.saved.saves {
            let at = (pen.x.at(save.at_s), pen.area.top - 4.0);
            let tip = Tip::of(self.cell, saves::describe(save))
                .with("tier", &self.traffic.tier)
                .with("step", save.step)
                .with("stall", save.stall_s);
            pen.svg.mark(&tip, |svg| palette::marker(svg, "save", 4, at, 3.6));
        }
        let wall_s = self.train.totals.wall_s;
        pen.upright("limit", wall_s, 9.0);
        pen.note("v limit-name", wall_s, -18.0, &format!("end of training, {}", brief_seconds(wall_s)));
    }

    fn tip(&self, from_s: f64, to_s: f64, rates: &[Option<f64>]) -> Tip {
        let rate = |i: usize| rates.get(i).copied().flatten().unwrap_or(0.0);
        let (wrote, got, tier) = (rate(0), rate(1), &self.traffic.tier);
        let after = if from_s >= self.train.totals.wall_s { "\nafter the end of training" } else { "" };
        let when = format!("{} to {}", seconds(from_s), seconds(to_s));
        let moved = format!("written {} MB/s\nread {} MB/s", quantity(wrote), quantity(got));
        Tip::of(self.cell, format!("{tier}, {when}\n{moved}{after}"))
            .with("tier", tier)
            .with("time", from_s)
            .with("written", (wrote * 1e3).round() / 1e3)
            .with("read", (got * 1e3).round() / 1e3)
    }
}

fn data(panels: &[Tier<'_>]) -> Data {
    let ticks = panels.iter().flat_map(|tier| {
        let n = tier.traffic.written_mb.len().max(tier.traffic.read_mb.len());
        (0..n).map(move |i| (tier, i, i as f64 * tier.traffic.every_s))
    });
    let rate = |mb: &[f64], tier: &Tier<'_>, i: usize| mb.get(i).map(|mb| mb / tier.traffic.every_s);
    let mut data = Columns::<(&Tier<'_>, usize, f64)>::new()
        .text("at", "cell", |(tier, ..)| level::all(&tier.cell.factors))
        .text("tier", "tier", |(tier, ..)| tier.traffic.tier.clone())
        .number("time_s", "from, s", flows::time, |(.., from)| *from)
        .number("written_mb_per_s", "written, MB/s", quantity, move |(of, i, _)| rate(&of.traffic.written_mb, of, *i))
        .number("read_mb_per_s", "read, MB/s", quantity, move |(of, i, _)| rate(&of.traffic.read_mb, of, *i))
        .text("after_end", "after the end", |(of, _, from)| if *from >= of.train.totals.wall_s { "yes" } else { "" })
        .of(ticks);
    data.hide_if_same("at");
    data
}
