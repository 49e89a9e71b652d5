//! What a column of a trace means.

use crate::error::{Error, Result, escape};

/// What a column says of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Number of the step.
    Step,
    /// Whether the training found Inf or NaN in the scaled gradients.
    FoundInf,
    /// The loss scale in force.
    Scale,
    /// Largest magnitude of the true gradients.
    GradAmax,
    /// Largest magnitude of the scaled gradients.
    ScaledAmax,
    /// Number of Inf and NaN in the scaled gradients.
    Nonfinite,
    /// Norm of the true gradients.
    GradNorm,
    /// Name of the tensor that the row is about: a step has a row for each.
    Tensor,
    /// Largest magnitude of one tensor's true gradient.
    TensorAmax,
    /// Number of Inf and NaN in one tensor's scaled gradient.
    TensorNonfinite,
}

/// The roles: name, what it says, and the heads that are recognised, in any case. The heads of the last two
/// are followed by a colon and the tensor's name.
pub const ROLES: &[(&str, Role, &str, &[&str])] = &[
    ("step", Role::Step, "number of the step", &["step", "iteration", "iter", "global_step", "update"]),
    (
        "found_inf",
        Role::FoundInf,
        "0 or 1: Inf or NaN was found in the scaled gradients",
        &["found_inf", "overflow", "is_overflow", "has_overflow", "has_nan", "found_nan"],
    ),
    ("scale", Role::Scale, "the loss scale in force", &["scale", "loss_scale", "scale_used"]),
    (
        "grad_amax",
        Role::GradAmax,
        "largest |gradient|, in true units",
        &["grad_amax", "grad_amax_fp32", "amax", "true_amax", "unscaled_amax", "grad_absmax"],
    ),
    (
        "scaled_amax",
        Role::ScaledAmax,
        "largest |scaled gradient|; needs scale",
        &["scaled_amax", "scaled_grad_amax", "scaled_grad_amax_fp16"],
    ),
    (
        "nonfinite",
        Role::Nonfinite,
        "how many Inf and NaN the scaled gradients have",
        &["nonfinite", "scaled_grad_nonfinite", "num_nonfinite"],
    ),
    (
        "grad_norm",
        Role::GradNorm,
        "norm of all gradients, in true units",
        &["grad_norm", "gnorm", "total_norm", "global_grad_norm"],
    ),
    (
        "tensor",
        Role::Tensor,
        "tensor that the row is about; a step has a row for each",
        &["tensor", "tensor_name", "param", "parameter"],
    ),
    (
        "tensor_amax",
        Role::TensorAmax,
        "amax:NAME, the largest |gradient| of tensor NAME",
        &["amax", "amax_fp32", "grad_amax"],
    ),
    (
        "tensor_nonfinite",
        Role::TensorNonfinite,
        "nonfinite:NAME, the Inf and NaN in its scaled gradient",
        &["nonfinite", "nan", "inf", "found_inf"],
    ),
];

/// A column that is of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it says.
    pub role: Role,
    /// Which tensor it is about.
    pub tensor: Option<String>,
}

/// What the columns with these heads mean; `mapped` has `role=head` as typed. `None` for those of no use.
///
/// # Errors
/// There is no such role or head, or two columns say the same.
pub(super) fn recognise(heads: &[String], mapped: &[String]) -> Result<Vec<Option<Column>>> {
    let mut columns: Vec<Option<Column>> = heads.iter().map(|head| guess(head)).collect();
    for pair in mapped {
        let Some((name, head)) = pair.split_once('=') else {
            return Err(Error::new(format!("--column takes ROLE=NAME, not '{}'", escape(pair))));
        };
        let Some(&(_, role, ..)) = ROLES.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<_> = ROLES.iter().map(|(name, ..)| *name).collect();
            return Err(Error::new(format!(
                "--column: there is no role '{}'; the roles are {}",
                escape(name),
                known.join(", ")
            )));
        };
        let about_tensor = matches!(role, Role::TensorAmax | Role::TensorNonfinite);
        let mut found = false;
        for (theirs, column) in heads.iter().zip(&mut columns) {
            // Another column of that role gives way to the one that was named.
            let tensor = if about_tensor { theirs.strip_prefix(head).map(str::to_owned) } else { None };
            if tensor.is_some() || (!about_tensor && theirs == head) {
                *column = Some(Column { role, tensor });
                found = true;
            } else if !about_tensor && column.as_ref().is_some_and(|column| column.role == role) {
                *column = None;
            }
        }
        if !found {
            let what =
                format!("--column: there is no column '{}'; the columns are {}", escape(head), few(heads));
            return Err(Error::new(what));
        }
    }
    for (index, column) in columns.iter().enumerate() {
        let same = columns.iter().take(index).position(|other| column.is_some() && other == column);
        if let Some(other) = same {
            let (first, second) = (escape(&heads[other]), escape(&heads[index]));
            let role = column.as_ref().map_or("", |column| name_of(column.role));
            return Err(Error::new(format!(
                "the columns '{first}' and '{second}' both say {role}; --column {role}=NAME chooses one"
            )));
        }
    }
    Ok(columns)
}

fn guess(head: &str) -> Option<Column> {
    let of_tensor = |role: &Role| matches!(role, Role::TensorAmax | Role::TensorNonfinite);
    let (name, tensor) = match head.split_once(':') {
        Some((name, tensor)) => (name, Some(tensor)),
        None => (head, None),
    };
    // Loggers file them under a group (train/loss_scale), and Megatron-LM writes loss-scale.
    let name = name.rsplit('/').next().unwrap_or(name).trim().to_ascii_lowercase().replace('-', "_");
    let (_, role, ..) = ROLES
        .iter()
        .find(|(_, role, _, heads)| of_tensor(role) == tensor.is_some() && heads.contains(&&*name))?;
    Some(Column { role: *role, tensor: tensor.map(str::to_owned) })
}

fn name_of(role: Role) -> &'static str {
    ROLES.iter().find(|(_, known, ..)| *known == role).map_or("", |(name, ..)| name)
}

/// The first names of a list, as a sentence has them.
pub(super) fn few(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| escape(name)).collect();
    let more = names.len().saturating_sub(SHOWN);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}
