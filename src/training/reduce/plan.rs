//! Which cases are compared: one way of reducing in each format, and from there each other algorithm, way of
//! accumulating and way of dividing alone.

use super::case::{Accumulate, Case, Divide};
use super::order::Algorithm;
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::training::Stored;

/// What is compared.
#[derive(Clone, Debug)]
pub struct ReducePlan {
    cases: Vec<Case>,
    /// Those of them that are also computed for other numbers of ranks.
    world_cases: Vec<Case>,
    rows: Vec<(Case, usize)>,
    fsdp: Option<FsdpPlan>,
}

/// FSDP's mixed precision policy.
#[derive(Clone, Copy, Debug)]
pub struct FsdpPlan {
    /// What gradients are made in.
    pub param: FormatSpec,
    /// What they are reduced in.
    pub reduce: FormatSpec,
    /// What buffers are kept in.
    pub buffer: FormatSpec,
    /// Number of the case with gradients made in `param` and reduced in float32.
    pub in_float32: usize,
    /// Number of the case with gradients made in `param` and reduced in `reduce`.
    pub as_asked: usize,
}

impl ReducePlan {
    /// Compares each of `formats`; `fsdp` has the formats of parameters, reduction and buffers.
    ///
    /// # Errors
    /// A format that gradients are not reduced in, or an empty list.
    pub fn new(
        formats: &[FormatSpec],
        algorithms: &[Algorithm],
        accumulations: &[Accumulate],
        divisions: &[Divide],
        fsdp: Option<[FormatSpec; 3]>,
    ) -> Result<Self> {
        let (Some(&algorithm), Some(&accumulate), Some(&divide)) =
            (algorithms.first(), accumulations.first(), divisions.first())
        else {
            return Err(Error::new("nothing to compare"));
        };
        let (mut cases, mut rows, mut world_cases) = (Vec::new(), Vec::new(), Vec::new());
        let mut known: Vec<FormatSpec> = Vec::new();
        for format in formats {
            if known.contains(format) {
                continue;
            }
            known.push(*format);
            let wire = Stored::new(*format, None)?;
            let base = Case { param: None, wire, algorithm, accumulate, divide };
            let mut add = |case: Case, in_worlds: bool| {
                // Both go round the ring, so they have the same sums.
                let order = |case: &Case| match case.algorithm {
                    Algorithm::ReduceScatter => Algorithm::Ring,
                    other => other,
                };
                let same = |other: &Case| {
                    case.contributes_as(other)
                        && order(&case) == order(other)
                        && case.accumulate == other.accumulate
                };
                let position = cases.iter().position(same).unwrap_or_else(|| {
                    cases.push(case);
                    if in_worlds {
                        world_cases.push(case);
                    }
                    cases.len() - 1
                });
                let row = (case, position);
                if !rows
                    .iter()
                    .any(|(known, at): &(Case, usize)| *at == position && known.algorithm == case.algorithm)
                {
                    rows.push(row);
                }
            };
            add(base, true);
            algorithms.iter().for_each(|&algorithm| add(Case { algorithm, ..base }, true));
            accumulations.iter().for_each(|&accumulate| add(Case { accumulate, ..base }, true));
            divisions.iter().for_each(|&divide| add(Case { divide, ..base }, false));
        }
        let fsdp = match fsdp {
            None => None,
            Some([param, reduce, buffer]) => {
                let case = |format: FormatSpec| {
                    Ok::<_, Error>(Case {
                        param: Some(Stored::new(param, None)?),
                        wire: Stored::new(format, None)?,
                        algorithm: Algorithm::ReduceScatter,
                        accumulate: Accumulate::Same,
                        divide: Divide::Split,
                    })
                };
                cases.extend([case(crate::format::find("float32")?)?, case(reduce)?]);
                let (in_float32, as_asked) = (cases.len() - 2, cases.len() - 1);
                Some(FsdpPlan { param, reduce, buffer, in_float32, as_asked })
            }
        };
        Ok(Self { cases, world_cases, rows, fsdp })
    }

    /// Everything that is computed.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// What is computed for other numbers of ranks.
    pub fn world_cases(&self) -> &[Case] {
        &self.world_cases
    }

    /// What is shown, and the number of the computed case that it has its figures from.
    pub fn rows(&self) -> &[(Case, usize)] {
        &self.rows
    }

    /// FSDP's policy, if one was asked about.
    pub fn fsdp(&self) -> Option<&FsdpPlan> {
        self.fsdp.as_ref()
    }
}
