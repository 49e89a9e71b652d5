//! Walks the calls of a trace as the tree that their times make, and judges each when all within it is known.

use std::collections::{BTreeMap, HashMap};

use super::casts::{Cast, CastCause, Casts};
use super::policy::{Device, Kind, Policy};
use super::row::{Cause, Key, OpRow, Verdict};
use super::trace::{Call, Trace};

/// A call that has not ended yet.
struct Frame {
    call: u32,
    kind: Kind,
    end: i64,
    /// Time of the calls directly within, on the CPU, and of all launched so far, on the device.
    inner_ns: u64,
    device_ns: u64,
    /// Time on the device of what it launched itself.
    launched_ns: u64,
    /// A custom op or function that it is in, itself included: index into the names.
    custom: Option<u32>,
    backward: bool,
    optimizer: bool,
    /// Whether it is the call that autocast makes after the casts, or in one.
    through: bool,
    /// Whether it is of the list of the lower precision, or in an op that is.
    in_lower: bool,
    /// Whether autocast runs it, or an op that it is in, in float32.
    in_fp32: bool,
    /// Whether autocast was found to handle it.
    dispatches: bool,
    /// Whether a matrix multiplication, or an op of the float32 list, is within.
    holds_matmul: bool,
    holds_fp32: bool,
    /// Conversions directly within.
    casts: Vec<Cast>,
}

/// What the walk adds up.
pub(super) struct Walk<'a> {
    trace: &'a Trace,
    kinds: Vec<Kind>,
    pub(super) rows: HashMap<Key, OpRow>,
    pub(super) casts: Casts,
    /// Calls that autocast handled.
    pub(super) dispatched: u64,
    /// Types that it cast to for ops of the lower precision, and how often.
    pub(super) lower: BTreeMap<&'static str, u64>,
    /// Time of all outermost calls, in ns.
    pub(super) total_ns: u64,
    /// Time on the device that belongs to a call, in ns.
    pub(super) device_ns: u64,
    /// Custom ops that no matrix multiplication of PyTorch is within.
    pub(super) opaque: HashMap<Key, OpRow>,
}

/// The list that it is in.
fn policy(kind: Kind) -> Option<Policy> {
    match kind {
        Kind::Op { policy, .. } => policy,
        _ => None,
    }
}

/// Whether the lower precision is meant for it: the ops of that list are taken for matrix multiplications, as
/// nearly all are.
fn is_matmul(kind: Kind) -> bool {
    matches!(kind, Kind::Op { matmul: true, .. } | Kind::Op { policy: Some(Policy::Lower), .. })
}

impl<'a> Walk<'a> {
    pub(super) fn new(trace: &'a Trace, device: Device) -> Self {
        Self {
            trace,
            kinds: trace.names.iter().map(|name| Kind::of(name, device)).collect(),
            rows: HashMap::new(),
            casts: Casts::default(),
            dispatched: 0,
            lower: BTreeMap::new(),
            total_ns: 0,
            device_ns: 0,
            opaque: HashMap::new(),
        }
    }

    /// Walks all calls.
    pub(super) fn run(&mut self) {
        let external = self.launched_by_call();
        let mut stack: Vec<Frame> = Vec::new();
        let mut thread = None;
        for (index, call) in self.trace.calls.iter().enumerate() {
            let same_thread = thread == Some(call.thread);
            thread = Some(call.thread);
            while stack.last().is_some_and(|top| !same_thread || top.end <= call.start) {
                self.leave(&mut stack);
            }
            let launched = external.get(&(index as u32)).copied().unwrap_or(0);
            let frame = self.enter(index as u32, call, &mut stack, launched);
            stack.push(frame);
        }
        while !stack.is_empty() {
            self.leave(&mut stack);
        }
    }

    /// Time on the device, by the call that launched what took it.
    fn launched_by_call(&mut self) -> HashMap<u32, u64> {
        let mut launched = HashMap::new();
        if self.trace.kernels.is_empty() {
            return launched;
        }
        let calls = self.trace.calls.iter().enumerate();
        let mut ids: Vec<(u64, u32)> =
            calls.filter(|(_, call)| call.external > 0).map(|(i, c)| (c.external.into(), i as u32)).collect();
        ids.sort_unstable();
        for &(id, ns) in &self.trace.kernels {
            if let Ok(at) = ids.binary_search_by_key(&id, |(id, _)| *id) {
                let sum: &mut u64 = launched.entry(ids[at].1).or_default();
                *sum = sum.saturating_add(ns);
                self.device_ns = self.device_ns.saturating_add(ns);
            }
        }
        launched
    }

    fn enter(&self, index: u32, call: &Call, stack: &mut [Frame], launched: u64) -> Frame {
        let kind = self.kinds[call.name as usize];
        let own = policy(kind);
        let mut frame = Frame {
            call: index,
            kind,
            end: call.end(),
            inner_ns: 0,
            device_ns: launched,
            launched_ns: launched,
            custom: None,
            backward: kind == Kind::Backward,
            optimizer: kind == Kind::Optimizer,
            through: false,
            in_lower: own == Some(Policy::Lower),
            in_fp32: false,
            dispatches: false,
            holds_matmul: false,
            holds_fp32: false,
            casts: Vec::new(),
        };
        if let Some(parent) = stack.last_mut() {
            frame.custom = parent.custom;
            frame.backward |= parent.backward;
            frame.optimizer |= parent.optimizer;
            frame.through = parent.through;
            frame.in_lower |= parent.in_lower;
            frame.in_fp32 = parent.in_fp32;
            // A child never outlives its parent, but for rounding.
            frame.end = frame.end.min(parent.end);
            let outer = &self.trace.calls[parent.call as usize];
            if outer.name == call.name && own.is_some() && !parent.through {
                let inputs = |call: &Call| self.trace.signatures[call.signature as usize].inputs();
                // `norm` is called again with the type of the result as one more input.
                let extra = usize::from(own == Some(Policy::Fp32Result));
                if (inputs(outer)..=inputs(outer) + extra).contains(&inputs(call)) {
                    parent.dispatches = true;
                    frame.through = true;
                    frame.in_fp32 |= is_fp32(own);
                }
            }
        }
        if kind == Kind::Custom {
            frame.custom = Some(call.name);
        }
        frame
    }

    /// Ends the innermost call: judges it and adds its time to the one around it.
    fn leave(&mut self, stack: &mut Vec<Frame>) {
        let Some(frame) = stack.pop() else { return };
        let call = &self.trace.calls[frame.call as usize];
        let signature = &self.trace.signatures[call.signature as usize];
        self.dispatched += u64::from(frame.dispatches);
        let mut casts = Vec::new();
        let mut cast = None;
        match frame.kind {
            Kind::Copy => {
                if let (Some(to), Some(from)) = (signature.float(0), signature.float(1))
                    && to != from
                {
                    let bytes = signature.elements(0).saturating_mul(to.bytes + from.bytes);
                    let (from, to) = (from.name, to.name);
                    let (ns, device_ns) = (call.duration, frame.device_ns);
                    cast = Some(Cast { call: frame.call, from, to, bytes, ns, device_ns });
                    casts.extend(cast);
                }
            }
            // The time of a conversion is that of all that makes it.
            Kind::Convert => {
                casts = frame.casts.clone();
                if let [only] = casts.as_mut_slice() {
                    (only.ns, only.device_ns) = (call.duration, frame.device_ns);
                    cast = Some(*only);
                }
            }
            _ => self.settle(&frame, call),
        }
        let verdict = self.judge(&frame, call, cast.is_some());
        let key = Key { name: call.name, types: signature.types(), policy: policy(frame.kind), verdict };
        add(&mut self.rows, key, &frame, call);
        if verdict == Verdict::Custom && !frame.holds_matmul && !frame.backward {
            add(&mut self.opaque, key, &frame, call);
        }
        if call_is_gradient(&self.trace.names[call.name as usize]) {
            self.casts.add_parameter(signature.shape(0));
        }
        match stack.last_mut() {
            Some(parent) => {
                parent.inner_ns = parent.inner_ns.saturating_add(call.duration);
                parent.device_ns = parent.device_ns.saturating_add(frame.device_ns);
                parent.holds_matmul |= frame.holds_matmul || is_matmul(frame.kind);
                parent.holds_fp32 |= frame.holds_fp32 || is_fp32(policy(frame.kind));
                parent.casts.extend(casts);
            }
            None => {
                self.total_ns = self.total_ns.saturating_add(call.duration);
                casts.iter().for_each(|cast| self.casts.add(cast, CastCause::Explicit));
            }
        }
    }

    /// Says who asked for the conversions directly within a call.
    fn settle(&mut self, frame: &Frame, call: &Call) {
        let signature = &self.trace.signatures[call.signature as usize];
        let cause = match frame.dispatches {
            true => CastCause::Autocast,
            false if frame.backward => CastCause::Backward,
            false => CastCause::Explicit,
        };
        for cast in &frame.casts {
            self.casts.add(cast, cause);
            if !frame.dispatches || policy(frame.kind) != Some(Policy::Lower) {
                continue;
            }
            *self.lower.entry(cast.to).or_default() += 1;
            let copy = &self.trace.calls[cast.call as usize];
            let shape = self.trace.signatures[copy.signature as usize].shape(1);
            // Weight and bias stand second and third; one of the shape of the first cannot be told from it.
            let is_weight = (1..3).any(|at| signature.float(at).is_some() && signature.shape(at) == shape);
            if is_weight && signature.shape(0) != shape && has_weights(&self.trace.names[call.name as usize])
            {
                self.casts.add_weight(shape, cast);
            }
        }
    }

    fn judge(&self, frame: &Frame, call: &Call, is_cast: bool) -> Verdict {
        let types = self.trace.signatures[call.signature as usize].types();
        let own = match frame.kind {
            Kind::Op { policy, .. } => policy,
            Kind::Copy | Kind::Convert if is_cast => return Verdict::Cast,
            Kind::Copy | Kind::Convert | Kind::Moves => return Verdict::Moves,
            Kind::Backward | Kind::Bookkeeping | Kind::Optimizer => return Verdict::Bookkeeping,
            Kind::Custom => return Verdict::Custom,
        };
        let matmul = is_matmul(frame.kind);
        if frame.dispatches {
            Verdict::Dispatch
        } else if matmul && frame.holds_matmul || is_fp32(own) && frame.holds_fp32 {
            Verdict::Outer
        } else if !types.is_float32() && !types.is_low() {
            // The types in lists of tensors are not recorded.
            if types.is_empty() { Verdict::Unlisted } else { Verdict::NotEligible }
        } else if matmul {
            // Attention in low precision keeps sums in float32 between its forward and its backward.
            if types.has_low() { Verdict::AsListed } else { Verdict::Missed(self.cause(frame)) }
        } else if frame.backward {
            Verdict::Backward
        } else if is_fp32(own) && types.is_low() && !frame.through {
            Verdict::RanLow
        } else if own.is_some() || frame.in_fp32 {
            Verdict::AsListed
        } else {
            Verdict::Unlisted
        }
    }

    fn cause(&self, frame: &Frame) -> Cause {
        match frame.custom {
            _ if frame.optimizer => Cause::Optimizer,
            _ if frame.through => Cause::Through,
            // Autocast would have handled a listed op in it, had it been on.
            Some(name) if frame.in_lower => Cause::Custom(name),
            _ if frame.backward => Cause::Backward,
            _ if frame.in_lower => Cause::Off,
            _ => Cause::NotListed,
        }
    }
}

fn is_fp32(policy: Option<Policy>) -> bool {
    matches!(policy, Some(Policy::Fp32 | Policy::Fp32Result))
}

/// Whether the op has its weights second and third.
fn has_weights(name: &str) -> bool {
    name == "aten::linear" || name == "aten::prelu" || name.starts_with("aten::conv")
}

/// Whether a call adds a gradient to a parameter's.
fn call_is_gradient(name: &str) -> bool {
    name == "torch::autograd::AccumulateGrad"
}

fn add(rows: &mut HashMap<Key, OpRow>, key: Key, frame: &Frame, call: &Call) {
    let row = rows.entry(key).or_insert_with(|| OpRow::new(key));
    row.calls += 1;
    row.self_ns = row.self_ns.saturating_add(call.duration.saturating_sub(frame.inner_ns));
    row.total_ns = row.total_ns.saturating_add(call.duration);
    row.device_ns = row.device_ns.saturating_add(frame.device_ns);
    row.device_self_ns = row.device_self_ns.saturating_add(frame.launched_ns);
}
