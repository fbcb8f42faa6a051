//! What checkpoints wrote and read over time: a panel a tier, time alike in all, the draining after the end included.
//!
//! Written bytes are a filled area, read ones an outline on top. A band is a checkpoint for which training stood still, and
//! a dashed line the end of the training: what lies behind it is draining, which costs the run nothing.

use forebay_record::{SaveFate, StudyCell, TierTraffic, TrainCell, TrainCheckpoints};
use forebay_units::{count, group_digits};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::level;
use crate::markup::Markup;
use crate::number::{brief_seconds, listed, quantity, seconds, tick};
use crate::svg::{Anchor, Area, Canvas, FONT, Px, SMALL, Svg, Tip, fitted, text_width};
use crate::table::Align::{Left, Right};

use super::{Context, Drawn, Key, axes, bins, both, saves, swatch};

/// Ticks along the axis of a desk's and of a phone's picture.
const MAX_TICKS: (usize, usize) = (240, 100);
/// Panels that are drawn.
const MAX_PANELS: usize = 8;
/// Panels whose highest rates differ by more than this have scales of their own.
const FAR_APART: f64 = 5.0;
const PANEL: f64 = 110.0;
const TITLE: f64 = 38.0;

/// A tier of a run.
struct Panel<'a> {
    /// What the run is called beside others.
    run: String,
    cell: &'a StudyCell,
    train: &'a TrainCell,
    saved: &'a TrainCheckpoints,
    traffic: &'a TierTraffic,
}

impl Panel<'_> {
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
    let shown = &all[..all.len().min(MAX_PANELS)];
    let mut remarks = Vec::new();
    if shown.len() < all.len() {
        remarks.push(format!("Of {} panels, {MAX_PANELS} are drawn; the data below has all.", all.len()));
    }
    let most = all.iter().map(|panel| panel.traffic.written_mb.len()).max().unwrap_or(0);
    if most > MAX_TICKS.0 {
        remarks.push(format!(
            "{} ticks are more than the picture has room for; it shows means of neighbours, the data below has all.",
            group_digits(most as u64)
        ));
    }
    Drawn {
        data: data(&all),
        reading: [said(&all), reading(shown)].join(" ").trim().to_owned(),
        remarks,
        legend: legend(shown),
        pictures: both(|canvas| draw(canvas, shown, &context.spec.title)),
        ..Drawn::default()
    }
}

fn panels<'a>(cells: &[&'a StudyCell], x: Option<&str>) -> Vec<Panel<'a>> {
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
        let panel = |traffic| Panel { run: called(cells, cell, x), cell, train, saved, traffic };
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
fn runs<'a, 'b>(panels: &'b [Panel<'a>]) -> Vec<&'b Panel<'a>> {
    let mut runs: Vec<&Panel<'_>> = Vec::new();
    for panel in panels {
        if !runs.iter().any(|known| std::ptr::eq(known.cell, panel.cell)) {
            runs.push(panel);
        }
    }
    runs
}

/// How much went where, and how long draining went on: ours, whatever the caption says.
fn said(panels: &[Panel<'_>]) -> String {
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

fn reading(panels: &[Panel<'_>]) -> String {
    let scales = match panels.len() {
        1 => "",
        _ if own_scales(panels) => " Each panel has a scale of its own.",
        _ => " All panels have the same scale.",
    };
    format!("MB written to and read from the files of each tier, in the run nearest to the median.{scales}")
}

fn legend(panels: &[Panel<'_>]) -> Vec<Key> {
    let line = |class: &'static str| super::sample(|svg| svg.line(class, (0.0, 7.0), (18.0, 7.0)));
    let mut keys = vec![Key { sample: swatch("ahead"), name: "written".to_owned() }];
    if panels.iter().any(|panel| panel.traffic.read_mb.iter().any(|mb| *mb > 0.0)) {
        keys.push(Key { sample: line("tr c0l"), name: "read".to_owned() });
    }
    keys.push(Key { sample: swatch("still"), name: "training stands still for a checkpoint".to_owned() });
    keys.push(Key { sample: line("limit"), name: "end of the training".to_owned() });
    keys
}

/// The span that a picture's tick stands for.
fn span_s(panels: &[Panel<'_>], most: usize) -> f64 {
    let every = panels.iter().map(|panel| panel.traffic.every_s).fold(0.0, f64::max);
    let end = panels.iter().map(Panel::end_s).fold(0.0, f64::max);
    every * (end / every / most as f64).ceil().max(1.0)
}

fn own_scales(panels: &[Panel<'_>]) -> bool {
    let span_s = span_s(panels, MAX_TICKS.0);
    let highs = || panels.iter().map(|panel| panel.highest(span_s)).filter(|high| *high > 0.0);
    highs().fold(0.0, f64::max) > FAR_APART * highs().fold(f64::MAX, f64::min)
}

fn draw(canvas: Canvas, panels: &[Panel<'_>], label: &str) -> Markup {
    let span_s = span_s(panels, if canvas.narrow { MAX_TICKS.1 } else { MAX_TICKS.0 });
    let end = panels.iter().map(Panel::end_s).fold(0.0, f64::max);
    let all = panels.iter().map(|panel| panel.highest(span_s)).fold(0.0, f64::max);
    let (own, several) = (own_scales(panels), runs(panels).len() > 1);
    let (left, right) = (50.0, canvas.width - 10.0);
    let x = Scale::between(0.0, end).over(left, right);
    let bottom = 20.0 + panels.len() as f64 * (PANEL + TITLE);
    let mut svg = Svg::new(canvas, bottom + 42.0);
    svg.text("tt", Anchor::Start, (2.0, FONT), "MB per second");
    for (i, panel) in panels.iter().enumerate() {
        let top = 20.0 + i as f64 * (PANEL + TITLE) + TITLE;
        let plot = Area { left, top, right, bottom: top + PANEL };
        let y = Scale::from_zero(if own { panel.highest(span_s) } else { all }).over(plot.bottom, plot.top);
        let name = fitted(&panel.name(several), FONT, canvas.width - 4.0);
        svg.text("tt ink", Anchor::Start, (2.0, plot.top - 14.0), &name);
        one(&mut svg, panel, span_s, (&x, &y), plot);
        ending(&mut svg, panel, &x, plot, 2.0 + text_width(&name, FONT));
    }
    let plot = Area { left, top: 0.0, right, bottom };
    axes::bottom(&mut svg, plot, &x, if canvas.narrow { 5 } else { 10 }, "Seconds since the start", tick);
    svg.finish(label)
}

/// A panel: grid, bands of checkpoints, areas, and what each says when it is pointed at.
fn one(svg: &mut Svg, panel: &Panel<'_>, span_s: f64, (x, y): (&Scale, &Scale), plot: Area) {
    for value in y.ticks(3) {
        svg.line("gr", (plot.left, y.at(value)), (plot.right, y.at(value)));
        svg.text("tk", Anchor::End, (plot.left - 7.0, y.at(value) + FONT * 0.35), tick(value));
    }
    svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
    for save in &panel.saved.saves {
        let (from, to) = (x.at(save.at_s), x.at(save.at_s + save.stall_s));
        svg.rect("still", Area { left: from, right: to.max(from + 1.5), ..plot });
    }
    let [written, read] = panel.rates(span_s);
    area(svg, "ahead", &written, span_s, panel.end_s(), x, y);
    if read.iter().any(|rate| *rate > 0.0) {
        area(svg, "outline c0l", &read, span_s, panel.end_s(), x, y);
    }
    hits(svg, panel, span_s, x, plot);
    // On top, so that they can be pointed at: a handle a checkpoint.
    for save in &panel.saved.saves {
        let at = x.at(save.at_s);
        let tip = Tip::new(saves::describe(save))
            .with("cell", &panel.cell.id)
            .with("tier", &panel.traffic.tier)
            .with("step", save.step)
            .with("stall", save.stall_s);
        svg.mark(&tip, |svg| crate::palette::marker(svg, "save", 4, (at, plot.top - 4.0), 3.6));
    }
}

fn area(svg: &mut Svg, class: &str, rates: &[f64], span_s: f64, end: f64, x: &Scale, y: &Scale) {
    let mut d = format!("M{} {}", Px(x.at(0.0)), Px(y.at(0.0)));
    for (i, rate) in rates.iter().enumerate() {
        d.push_str(&format!("V{}H{}", Px(y.at(*rate)), Px(x.at(((i + 1) as f64 * span_s).min(end)))));
    }
    d.push_str(&format!("V{}Z", Px(y.at(0.0))));
    svg.path(class, &d);
}

/// Where the training ends, with a name where there is room beside the panel's.
fn ending(svg: &mut Svg, panel: &Panel<'_>, x: &Scale, plot: Area, taken: f64) {
    let wall_s = panel.train.totals.wall_s;
    let at = x.at(wall_s);
    svg.line("limit", (at, plot.top - 9.0), (at, plot.bottom));
    let text = format!("end of training, {}", brief_seconds(wall_s));
    let width = text_width(&text, SMALL);
    let left = (at - width / 2.0).clamp(taken + 10.0, (plot.right - width).max(taken + 10.0));
    if left + width <= plot.right + 8.0 {
        svg.text("v limit-name", Anchor::Start, (left, plot.top - 14.0), text);
    }
}

/// Invisible columns that say the values of a tick.
fn hits(svg: &mut Svg, panel: &Panel<'_>, span_s: f64, x: &Scale, plot: Area) {
    let [written, read] = panel.rates(span_s);
    for i in 0..written.len().max(read.len()) {
        let from = i as f64 * span_s;
        let value = |rates: &[f64]| rates.get(i).copied().unwrap_or(0.0);
        let (wrote, got) = (value(&written), value(&read));
        let after = if from >= panel.train.totals.wall_s { "\nafter the end of the training" } else { "" };
        let text = format!(
            "{}, {} to {}\nwritten {} MB/s\nread {} MB/s{after}",
            panel.traffic.tier,
            seconds(from),
            seconds(from + span_s),
            quantity(wrote),
            quantity(got)
        );
        let tip = Tip::new(text)
            .with("cell", &panel.cell.id)
            .with("tier", &panel.traffic.tier)
            .with("time", from)
            .with("written", (wrote * 1e3).round() / 1e3)
            .with("read", (got * 1e3).round() / 1e3);
        let left = x.at(from);
        svg.mark(&tip, |svg| svg.rect("hit", Area { left, right: x.at(from + span_s).max(left + 0.5), ..plot }));
    }
}

fn data(panels: &[Panel<'_>]) -> Data {
    let mut data = Data::new(&[
        ("at", "cell", Left),
        ("tier", "tier", Left),
        ("time_s", "from, s", Right),
        ("written_mb_per_s", "written, MB/s", Right),
        ("read_mb_per_s", "read, MB/s", Right),
        ("after_end", "after the end", Left),
    ]);
    for panel in panels {
        let traffic = panel.traffic;
        for i in 0..traffic.written_mb.len().max(traffic.read_mb.len()) {
            let from = i as f64 * traffic.every_s;
            let rate = |mb: &[f64]| Value::maybe(mb.get(i).map(|mb| mb / traffic.every_s), quantity);
            data.row(vec![
                Value::text(level::all(&panel.cell.factors)),
                Value::text(traffic.tier.clone()),
                Value::number(from, |s| tick((s * 1e3).round() / 1e3)),
                rate(&traffic.written_mb),
                rate(&traffic.read_mb),
                Value::text(if from >= panel.train.totals.wall_s { "yes" } else { "" }),
            ]);
        }
    }
    data.hide_if_same("at");
    data
}
