//! A recorded step: the calls of ops, what they were given, and how long they took.

mod event;
mod read;
mod split;
mod types;

pub use read::read;
pub use types::{Float, Signature, TYPES, Types};

/// A call of an op, or of something else that the profiler brackets.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Index into [`Trace::names`].
    pub name: u32,
    /// Index into [`Trace::signatures`].
    pub signature: u32,
    /// Process and thread, numbered in the order of the file.
    pub thread: u32,
    /// The profiler's "External id", which its kernels have too; 0 if there is none.
    pub external: u32,
    /// When it began, in ns.
    pub start: i64,
    /// How long it took, in ns.
    pub duration: u64,
}

impl Call {
    /// When it ended, in ns.
    pub fn end(&self) -> i64 {
        self.start.saturating_add_unsigned(self.duration)
    }
}

/// What a trace has about ops. A call takes 32 bytes; names and input types are kept once.
#[derive(Debug, Default)]
pub struct Trace {
    /// Names of ops: untrusted text.
    pub names: Vec<String>,
    /// Inputs that calls were given.
    pub signatures: Vec<Signature>,
    /// Calls on the CPU, by thread and start, the outer before the inner.
    pub calls: Vec<Call>,
    /// Time on the device in ns, by the external id of the call it is of, sorted by it.
    pub kernels: Vec<(u64, u64)>,
    /// Time on the device, in ns, of kernels that no call could be found for.
    pub stray_kernels: u64,
    /// Threads that made calls.
    pub threads: u32,
    /// Calls whose inputs were recorded.
    pub typed_calls: u64,
    /// Events without the fields they should have.
    pub malformed: u64,
}
