//! What a tensor is in training, told by its name.

use regex::Regex;

/// What a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A gradient, of a parameter or of an activation.
    Gradient,
    /// What a layer gives or takes.
    Activation,
    /// A parameter.
    Weight,
}

/// Every role by name.
pub const ROLES: &[(&str, Role)] =
    &[("gradient", Role::Gradient), ("activation", Role::Activation), ("weight", Role::Weight)];

/// What names of gradients hold, as a word of their own.
pub const GRADIENT: &str = r"(?i)(^|[^a-z])(d|w|main)?grads?([^a-z]|$)|gradient|(^|[^a-z])(backward|grad_?(in|out)put|d[xyw])([^a-z]|$)";
/// What names of activations hold.
pub const ACTIVATION: &str =
    r"(?i)activation|(^|[^a-z])(acts?|forward|inputs?|outputs?|hidden_?states?)([^a-z]|$)";

impl Role {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        ROLES.iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }
}

/// How roles are told.
#[derive(Clone, Debug)]
pub struct Roles {
    /// Every tensor has this one, whatever it is called.
    pub all: Option<Role>,
    /// Names of gradients.
    pub gradient: Regex,
    /// Names of activations; what is neither is a weight.
    pub activation: Regex,
}

impl Roles {
    /// The role of the tensor `name` in the file `file`. A file of gradients holds them under the names of their
    /// parameters; `output.weight` is no activation, except in a file of activations.
    pub fn of(&self, file: &str, name: &str) -> Role {
        let parameter = [".weight", ".bias", "_weight", "_bias"].iter().any(|end| name.ends_with(end));
        if let Some(role) = self.all {
            role
        } else if self.gradient.is_match(name) || self.gradient.is_match(file) {
            Role::Gradient
        } else if self.activation.is_match(file) || (!parameter && self.activation.is_match(name)) {
            Role::Activation
        } else {
            Role::Weight
        }
    }
}
