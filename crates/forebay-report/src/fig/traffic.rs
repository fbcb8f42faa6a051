//! What checkpoints wrote and read over time: a panel a tier, time alike in all, the draining after the end included.
//!
//! Written bytes are a filled area, read ones an outline on top. A band is a checkpoint for which training stood still, and
//! a dashed line the end of the training: what lies behind it is draining, which costs the run nothing.

use forebay_record::{SaveFate, StudyCell, TierTraffic, TrainCell, TrainCheckpoints};
use forebay_units::count;

use crate::number::{brief_seconds, listed, seconds};

use super::bins::{self, MAX_TICKS};
use super::{
    Canvas, Columns, Context, Data, Drawn, Key, Panel, Pen, Plot, Scale, Tip, X, Y, both, first, level, palette,
    quantity, saves, tick,
};

/// Panels that are drawn.
const MAX_PANELS: usize = 8;
const PANEL: f64 = 110.0;

/// A tier of a run.
struct Tier<'a> {
    /// What the run is called beside others.
    run: String,
    cell: &'a StudyCell,
    train: &'a TrainCell,
    saved: &'a TrainCheckpoints,
    traffic: &'a TierTraffic,
}

impl Tier<'_> {
    fn end_s(&self) -> f64 {
        let n = self.traffic.written_mb.len().max(self.traffic.read_mb.len());
        (self.traffic.every_s * n as f64).max(self.train.totals.wall_s)
    }

    fn rates(&self, span_s: f64) -> [Vec<f64>; 2] {
        [&self.traffic.written_mb, &self.traffic.read_mb].map(|mb| bins::rates(mb, self.traffic.every_s, span_s))
    }

    fn highest(&self, span_s: f64) -> f64 {
        self.rates(span_s).into_iter().flatten().fold(0.0, f64::max)
    }

    /// The tier, and the run where there are several.
    fn name(&self, several: bool) -> String {
        let tier = &self.traffic.tier;
        if several && self.run != *tier { format!("{}: {tier}", self.run) } else { tier.clone() }
    }
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let all = panels(&cells, context.spec.x.as_deref());
    if all.is_empty() {
        return Drawn::nothing("No cell of this figure kept what its checkpoints wrote and read when.");
    }
    let mut remarks = Vec::new();
    let shown = first(&all, MAX_PANELS, "panels", &mut remarks);
    remarks.extend(bins::means(all.iter().map(|panel| panel.traffic.written_mb.len()).max().unwrap_or(0)));
    Drawn {
        data: data(&all),
        reading: [said(&all), reading(shown)].join(" ").trim().to_owned(),
        remarks,
        legend: legend(shown),
        pictures: both(&context.spec.title, |canvas| plot(canvas, shown)),
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
        let Some(train) = cell.train.as_deref().filter(|train| train.totals.wall_s.is_finite()) else { continue };
        let Some(saved) = &train.checkpoints else { continue };
        let panel = |traffic| Tier { run: called(cells, cell, x), cell, train, saved, traffic };
        panels.extend(saved.traffic.iter().filter(sound).map(panel));
    }
    panels
}

/// A run's level of the axis where that tells it from all others, else all of its levels.
fn called(cells: &[&StudyCell], cell: &StudyCell, x: Option<&str>) -> String {
    let of = |cell: &StudyCell| x.and_then(|x| Some(level::bare(x, cell.level(x)?)));
    let is_alone = cells.iter().filter(|other| of(other) == of(cell)).count() == 1;
    of(cell).filter(|_| is_alone).unwrap_or_else(|| level::all(&cell.factors))
}

/// The runs of the panels, each once.
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
    let has_tiers = panels.iter().any(|panel| panel.saved.burst_tier.is_some() || panel.saved.traffic.len() > 1);
    let n_left: u64 = runs.iter().map(|run| run.saved.n(SaveFate::OnFast)).sum();
    let mut parts = Vec::new();
    if !wrote.is_empty() {
        parts.push(format!("In all, {}.", listed(&wrote)));
    }
    if !drained.is_empty() {
        parts.push(format!("Draining went on after the end of the training for {}.", listed(&drained)));
    } else if has_tiers && n_left > 0 {
        let was = if n_left == 1 { "was" } else { "were" };
        parts.push(format!("{} {was} left to be drained by the next start.", count(n_left, "checkpoint")));
    } else if has_tiers {
        parts.push("Nothing was left to be drained at the end of the training.".to_owned());
    }
    parts.join(" ")
}

fn reading(panels: &[Tier<'_>]) -> String {
    let scales = match panels.len() {
        1 => "",
        _ if own_scales(panels) => " Each panel has a scale of its own.",
        _ => " All panels have the same scale.",
    };
    format!("MB written to and read from the files of each tier, in the run nearest to the median.{scales}")
}

fn legend(panels: &[Tier<'_>]) -> Vec<Key> {
    let reads = panels.iter().any(|panel| panel.traffic.read_mb.iter().any(|mb| *mb > 0.0));
    let mut keys = vec![Key::swatch("ahead", "written")];
    keys.extend(reads.then(|| Key::line("tr c0l", "read")));
    keys.push(Key::swatch("still", "training stands still for a checkpoint"));
    keys.push(Key::line("limit", "end of the training"));
    keys
}

fn span_s(panels: &[Tier<'_>], most: usize) -> f64 {
    bins::span_s(panels.iter().map(|panel| (panel.traffic.every_s, panel.end_s())), most)
}

fn own_scales(panels: &[Tier<'_>]) -> bool {
    let span_s = span_s(panels, MAX_TICKS.0);
    bins::own_scales(&panels.iter().map(|panel| panel.highest(span_s)).collect::<Vec<_>>())
}

fn plot<'a>(canvas: Canvas, tiers: &'a [Tier<'_>]) -> Plot<'a> {
    let span_s = span_s(tiers, if canvas.narrow { MAX_TICKS.1 } else { MAX_TICKS.0 });
    let end = tiers.iter().map(Tier::end_s).fold(0.0, f64::max);
    let all = tiers.iter().map(|tier| tier.highest(span_s)).fold(0.0, f64::max);
    let (own, several) = (own_scales(tiers), runs(tiers).len() > 1);
    let panel = |tier: &'a Tier<'_>| {
        let y = Y::new(Scale::from_zero(if own { tier.highest(span_s) } else { all }), 3, tick);
        let panel = Panel::new(y, move |pen| tier.draw(pen, span_s));
        panel.titled(tier.name(several)).high(PANEL).columns(1, tier.hits(span_s))
    };
    let x = X::over_time(canvas, Scale::between(0.0, end), "Seconds since the start");
    Plot::new("MB per second", x, tiers.iter().map(panel).collect())
}

impl Tier<'_> {
    /// Bands of checkpoints, areas, the end of the training, and a handle a checkpoint.
    fn draw(&self, pen: &mut Pen<'_>, span_s: f64) {
        for save in &self.saved.saves {
            pen.band("still", save.at_s, save.at_s + save.stall_s);
        }
        let [written, read] = self.rates(span_s);
        pen.steps("ahead", &written, span_s, self.end_s());
        if read.iter().any(|rate| *rate > 0.0) {
            pen.steps("outline c0l", &read, span_s, self.end_s());
        }
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

    /// The values of every tick.
    fn hits(&self, span_s: f64) -> Vec<(f64, f64, Tip)> {
        let [written, read] = self.rates(span_s);
        let hit = |i: usize| {
            let (from, tier) = (i as f64 * span_s, &self.traffic.tier);
            let value = |rates: &[f64]| rates.get(i).copied().unwrap_or(0.0);
            let (wrote, got) = (value(&written), value(&read));
            let after = if from >= self.train.totals.wall_s { "\nafter the end of the training" } else { "" };
            let when = format!("{} to {}", seconds(from), seconds(from + span_s));
            let moved = format!("written {} MB/s\nread {} MB/s", quantity(wrote), quantity(got));
            let tip = Tip::of(self.cell, format!("{tier}, {when}\n{moved}{after}"))
                .with("tier", tier)
                .with("time", from)
                .with("written", (wrote * 1e3).round() / 1e3)
                .with("read", (got * 1e3).round() / 1e3);
            (from, from + span_s, tip)
        };
        (0..written.len().max(read.len())).map(hit).collect()
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
        .number("time_s", "from, s", bins::time, |(.., from)| *from)
        .number("written_mb_per_s", "written, MB/s", quantity, move |(of, i, _)| rate(&of.traffic.written_mb, of, *i))
        .number("read_mb_per_s", "read, MB/s", quantity, move |(of, i, _)| rate(&of.traffic.read_mb, of, *i))
        .text("after_end", "after the end", |(of, _, from)| if *from >= of.train.totals.wall_s { "yes" } else { "" })
        .of(ticks);
    data.hide_if_same("at");
    data
}
