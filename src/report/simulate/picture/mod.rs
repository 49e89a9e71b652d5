//! The picture: the scale of every scaler over the steps, the scales that would have been safe, and below the
//! skipped steps and what underflowed.

mod panels;

use super::events::scale_text;
use super::findings::LOWER_BOUND;
use super::model::SimulateReport;
use crate::report::number::{count, plural};
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};
use crate::scaler::run::Run;
use crate::scaler::trace::Step;
use crate::stats::scales::{MAX_FLUSHED_SHARE, flushed};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 800;
const MARGIN: f64 = 40.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 940.0;
/// Right end of the plots where the sweep over constant scales stands beside them.
const RIGHT_OF_SWEEP: f64 = 780.0;
const TOP: f64 = 116.0;
/// Height of a scaler in the legend.
const LEGEND: f64 = 36.0;
/// Least height of the main panel.
const PANEL: f64 = 430.0;
/// Height of a strip of skipped steps.
const STRIP: f64 = 20.0;
/// Height of the panel of underflow.
const SHARES: f64 = 110.0;
/// Most scalers drawn.
const MOST: usize = 12;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const SAFE: Colour = Colour(224, 240, 226);
const EDGE: Colour = Colour(90, 150, 100);
const ALARM: Colour = Colour(176, 58, 0);
const NOTE: TextStyle = TextStyle::new(12.0, INK);
/// Okabe and Ito's colours, which the colour-blind can tell apart; without yellow, which is too light.
const COLOURS: [Colour; 6] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 128, 96),
    Colour(170, 68, 140),
    Colour(86, 160, 213),
    Colour(200, 140, 0),
];

/// Lays the picture out.
pub(super) fn picture(report: &SimulateReport) -> Picture {
    let runs = &report.runs[..report.runs.len().min(MOST)];
    let shares = report.record.has_histograms && !runs.is_empty();
    let below = STRIP * runs.len() as f64 + if shares { SHARES + 40.0 } else { 0.0 } + 110.0;
    // The main panel keeps its height, whatever is below it, and the legend has room beside it.
    let panel = PANEL.max(LEGEND * runs.len() as f64 + 70.0);
    let height = (TOP + panel + below).max(HEIGHT.into());
    let plot = Plot::new(report, runs, height - below);
    let mut picture = Picture::new(WIDTH, height as u32);
    head(&mut picture, report);
    plot.band(&mut picture, report);
    plot.axes(&mut picture);
    for (index, run) in runs.iter().enumerate() {
        plot.trajectory(&mut picture, run, index);
    }
    plot.legend(&mut picture, report, runs);
    if let Some(found) = &report.suggestion {
        plot.sweep(&mut picture, found, report.record.steps);
    }
    let mut y = plot.bottom + 44.0;
    for (index, run) in runs.iter().enumerate() {
        plot.skips(&mut picture, run, index, y);
        y += STRIP;
    }
    if shares {
        plot.shares(&mut picture, report, runs, y + 30.0);
    }
    picture.text((MARGIN, height - 18.0), LOWER_BOUND, NOTE.coloured(AXIS));
    picture
}

fn head(picture: &mut Picture, report: &SimulateReport) {
    let title = TextStyle::new(20.0, INK).bold();
    let record = &report.record;
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    // What a made-up record is like goes below its name: both are too long for a title.
    let made_up = record.synthetic.as_deref().map(|kind| kind.split_once(": ").unwrap_or((kind, "")));
    let subject = match (made_up, record.inputs.as_slice()) {
        (Some((kind, _)), _) => title.fit(&format!("Synthetic record, not a training ({kind})"), room),
        (None, [first, others @ ..]) => {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            title.fit(first, room - title.width(&more)) + &more
        }
        (None, []) => "No input".to_owned(),
    };
    picture.text((MARGIN, 48.0), &subject, title);
    let mut facts = vec![match made_up {
        Some((_, about)) => format!("{}: {about}", plural(record.steps, "step")),
        None => plural(record.steps, "recorded step"),
    }];
    if record.missing > 0 {
        let what = if report.options.gaps == "hold" { "held from the step before" } else { "left out" };
        facts.push(format!("{} missing, {what}", count(record.missing)));
    }
    if record.nonfinite > 0 {
        facts.push(format!("{} with NaN or Inf in the true gradients", count(record.nonfinite)));
    }
    facts.push(format!("overflow in {}", report.options.format));
    facts.extend((report.runs.len() > 1).then(|| "equal scales lie side by side".to_owned()));
    let style = TextStyle::new(14.0, AXIS);
    picture.text((MARGIN, 72.0), &style.fit(&facts.join(" · "), room), style);
}

/// The main panel: steps to the right, log2 of the scale upwards.
struct Plot {
    steps: u64,
    right: f64,
    low: f64,
    high: f64,
    bottom: f64,
    first: u64,
    last: u64,
    numbered: bool,
}

impl Plot {
    fn new(report: &SimulateReport, runs: &[Run], bottom: f64) -> Self {
        let steps =
            runs.iter().map(|run| run.totals.steps).max().unwrap_or_else(|| report.schedule.pass()).max(1);
        let logs = runs.iter().flat_map(|run| {
            [run.totals.smallest, run.totals.largest, run.first_scale, run.last_scale].map(log2)
        });
        let edges = report.trace.steps.iter().filter_map(|step| largest_safe(report, step));
        let finite = logs.chain(edges).filter(|log| log.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        let (low, high) = if low <= high { (low.floor() - 1.0, high.ceil() + 1.0) } else { (0.0, 17.0) };
        let turn = |position| report.schedule.turn(position).number;
        Self {
            steps,
            right: if report.suggestion.is_some() { RIGHT_OF_SWEEP } else { RIGHT },
            low,
            high: high.max(low + 6.0),
            bottom,
            first: turn(0),
            last: turn(steps - 1),
            // With steps left out, positions are no numbers.
            numbered: turn(steps - 1) - turn(0) == steps - 1,
        }
    }

    fn x(&self, position: f64) -> f64 {
        LEFT + (self.right - LEFT) * position / self.steps as f64
    }

    fn y(&self, log2: f64) -> f64 {
        let log2 = log2.clamp(self.low, self.high);
        self.bottom - (self.bottom - TOP) * (log2 - self.low) / (self.high - self.low)
    }

    /// The scales that neither overflow nor, where that is known, flush too much.
    fn band(&self, picture: &mut Picture, report: &SimulateReport) {
        let columns = (self.right - LEFT) as u64;
        let width = (self.right - LEFT) / columns as f64;
        let smallest: Vec<Option<f64>> = report
            .trace
            .histograms
            .iter()
            .map(|source| {
                let allowed = (MAX_FLUSHED_SHARE * source.nonzero_finite() as f64) as u64;
                (-126..=127).find(|&k| flushed(source, report.trace.format(), k) <= allowed).map(f64::from)
            })
            .collect();
        let mut edge = Vec::new();
        for column in 0..columns {
            let from = self.steps * column / columns;
            let to = (self.steps * (column + 1) / columns).max(from + 1);
            let mut steps: Vec<usize> = Vec::new();
            let (first, last) = (report.schedule.turn(from).step, report.schedule.turn(to - 1).step);
            if first <= last {
                steps.extend(first..=last);
            } else {
                steps.extend([first, last]);
            }
            let steps = || steps.iter().map(|&step| &report.trace.steps[step]);
            if steps().any(|step| step.nonfinite.is_some()) {
                let x = LEFT + width * column as f64;
                picture.rect((x, TOP), (width, self.bottom - TOP), Colour(248, 222, 212));
                continue;
            }
            let Some(high) = steps().filter_map(|step| largest_safe(report, step)).reduce(f64::min) else {
                continue;
            };
            let low = steps().filter_map(|step| smallest[step.histogram? as usize]).reduce(f64::max);
            let (x, top) = (LEFT + width * column as f64, self.y(high));
            edge.push((x, top));
            let foot = self.y(low.unwrap_or(self.low));
            if foot > top {
                picture.rect((x, top), (width, foot - top), SAFE);
            }
        }
        if edge.len() > 1 {
            picture.line(&edge, 1.0, EDGE);
        }
    }

    fn axes(&self, picture: &mut Picture) {
        let style = NOTE.anchored(Anchor::End);
        let span = self.high - self.low;
        let pitch = [1, 2, 4, 8, 16, 32, 64]
            .into_iter()
            .find(|&pitch| span / f64::from(pitch) <= 14.0)
            .unwrap_or(128);
        let from = (self.low as i32).div_euclid(pitch);
        for k in (from..).map(|multiple| multiple * pitch).take_while(|&k| f64::from(k) <= self.high) {
            if f64::from(k) < self.low {
                continue;
            }
            let y = self.y(k.into());
            picture.line(&[(LEFT, y), (self.right, y)], 0.5, FAINT);
            picture.text((LEFT - 8.0, y + 4.0), &format!("2^{k}"), style);
        }
        picture.text((LEFT - 8.0, TOP - 12.0), "loss scale", style.coloured(AXIS));
        picture.line(&[(LEFT, self.bottom), (self.right, self.bottom)], 1.0, AXIS);
        let style = NOTE.anchored(Anchor::Middle);
        let (first, last) = if self.numbered { (self.first, self.last) } else { (0, self.steps - 1) };
        let pitch = step_pitch(last - first);
        for number in (first.div_ceil(pitch)..=last / pitch).map(|multiple| multiple * pitch) {
            let x = self.x((number - first) as f64);
            picture.line(&[(x, self.bottom), (x, self.bottom + 5.0)], 1.0, AXIS);
            picture.text((x, self.bottom + 20.0), &count(number), style);
        }
        let what = if self.numbered {
            "step".to_owned()
        } else {
            format!("steps simulated ({} to {})", count(self.first), count(self.last))
        };
        picture.text((RIGHT + 52.0, self.bottom + 20.0), &what, NOTE.coloured(AXIS));
    }

    fn trajectory(&self, picture: &mut Picture, run: &Run, index: usize) {
        let colour = COLOURS[index % COLOURS.len()];
        // Lines at the same scale lie beside each other.
        let shift = 2.0 * index as f64;
        let y = |scale: f64| self.y(log2(scale)) - shift;
        let mut points = vec![(self.x(0.0), y(run.first_scale))];
        for event in &run.events {
            let x = self.x((event.position + 1) as f64);
            let (before, after) = (y(event.scale), y(event.scale_after));
            // Points less than half a pixel apart say nothing more, apart from their height.
            let last = points.last().copied().unwrap_or((x, before));
            if x - last.0 < 0.5 && (after - last.1).abs() < 0.5 {
                continue;
            }
            points.extend([(x, before), (x, after)]);
        }
        points.push((self.x(run.totals.steps as f64), y(run.last_scale)));
        match index / COLOURS.len() {
            0 => picture.line(&points, 2.0, colour),
            _ => picture.dashes(&points, 2.0, colour, (6.0, 3.0)),
        }
        if let Some((position, _)) = run.abort() {
            let (x, y) = (self.x(position as f64), y(run.last_scale));
            picture.line(&[(x - 5.0, y - 5.0), (x + 5.0, y + 5.0)], 2.5, ALARM);
            picture.line(&[(x - 5.0, y + 5.0), (x + 5.0, y - 5.0)], 2.5, ALARM);
        }
    }

    fn legend(&self, picture: &mut Picture, report: &SimulateReport, runs: &[Run]) {
        let x = RIGHT + 20.0;
        let mut y = TOP + 8.0;
        for (index, run) in runs.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let line = [(x, y - 4.0), (x + 22.0, y - 4.0)];
            match index / COLOURS.len() {
                0 => picture.line(&line, 3.0, colour),
                _ => picture.dashes(&line, 3.0, colour, (6.0, 3.0)),
            }
            picture.text((x + 30.0, y), run.setup.spec.name, NOTE.bold());
            let ends = match run.abort() {
                Some((position, _)) => format!("stops at {}", count(report.schedule.turn(position).number)),
                None => format!("{} → {}", scale_text(run.first_scale), scale_text(run.last_scale)),
            };
            let ends_colour = if run.abort().is_some() { ALARM } else { AXIS };
            picture.text((x + 30.0, y + 15.0), &ends, NOTE.coloured(ends_colour));
            y += LEGEND;
        }
        if report.runs.len() > MOST {
            let more = format!("{} more not drawn", report.runs.len() - MOST);
            picture.text((x + 30.0, y), &more, NOTE.coloured(AXIS));
            y += 24.0;
        }
        picture.rect((x, y - 10.0), (22.0, 12.0), SAFE);
        let safe = if report.record.has_histograms { "safe: no overflow, at most" } else { "no overflow" };
        picture.text((x + 30.0, y), safe, NOTE);
        if report.record.has_histograms {
            picture.text((x + 30.0, y + 15.0), &format!("{} % underflow", 100.0 * MAX_FLUSHED_SHARE), NOTE);
        } else {
            picture.text((x + 30.0, y + 15.0), "underflow not recorded", NOTE.coloured(AXIS));
        }
    }
}

/// Distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most eight.
fn step_pitch(span: u64) -> u64 {
    let powers = (0..19).map(|exponent| 10_u64.pow(exponent));
    let mut pitches = powers.flat_map(|power| [1, 2, 5].map(|times| times * power));
    pitches.find(|pitch| span / pitch < 8).unwrap_or(u64::MAX)
}

fn log2(scale: f64) -> f64 {
    libm::log2(scale)
}

/// log2 of the largest power of two at which a step does not overflow, if that is known.
fn largest_safe(report: &SimulateReport, step: &Step) -> Option<f64> {
    report.trace.largest_without_overflow(step).map(f64::from)
}
