//! What of a checkpoint is a parameter: told by names, as frameworks write them.

/// What a tensor of a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A weight or bias.
    Parameter,
    /// A state of the optimizer, the learning rate's schedule or the loss scaler.
    Optimizer,
    /// Kept with the model and not trained: statistics of normalisations, masks.
    Buffer,
}

/// Parts of names that only states have.
const STATES: &[&str] = &[
    "optimizer",
    "optimizer_state",
    "optimizer_states",
    "optimizer_state_dict",
    "optim",
    "opt_state",
    "exp_avg",
    "exp_avg_sq",
    "max_exp_avg_sq",
    "momentum_buffer",
    "lr_scheduler",
    "lr_schedulers",
    "scheduler",
    "scaler",
    "grad_scaler",
    "rng_state",
    "cuda_rng_state",
];

/// Last parts of names that only buffers have.
const BUFFERS: &[&str] =
    &["running_mean", "running_var", "num_batches_tracked", "inv_freq", "attn_mask", "masked_bias"];

/// What the tensor called `name` is.
pub fn role(name: &str) -> Role {
    let parts = || name.split(['.', '/']);
    if parts().any(|part| STATES.contains(&part)) {
        Role::Optimizer
    } else if parts().next_back().is_some_and(|part| BUFFERS.contains(&part)) {
        Role::Buffer
    } else {
        Role::Parameter
    }
}
