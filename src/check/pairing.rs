//! Which tensor of one dump is which of another.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::error::{Error, Result, escape};

/// What a tensor is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its name: untrusted text.
    pub name: String,
    /// Training step, if known.
    pub step: Option<u64>,
    /// Rank, if known.
    pub rank: Option<u64>,
}

/// Tensors that belong together, by their positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// Of the first and the second, in the order of the first.
    pub pairs: Vec<(usize, usize)>,
    /// Those that only the first has.
    pub only_first: Vec<usize>,
    /// Those that only the second has.
    pub only_second: Vec<usize>,
}

impl Pairing {
    /// Pairs tensors of one name. The step is part of it only where one of the sides has several steps, so that
    /// one step can be compared with another; likewise the rank. Tensors that are called the same are paired in
    /// their order.
    pub fn new(first: &[Identity], second: &[Identity]) -> Self {
        let several = |number: fn(&Identity) -> Option<u64>| {
            [first, second].iter().any(|side| side.iter().map(number).collect::<BTreeSet<_>>().len() > 1)
        };
        let (steps, ranks) = (several(|tensor| tensor.step), several(|tensor| tensor.rank));
        let key = |tensor: &Identity| Identity {
            name: tensor.name.clone(),
            step: tensor.step.filter(|_| steps),
            rank: tensor.rank.filter(|_| ranks),
        };
        let mut waiting: BTreeMap<Identity, Vec<usize>> = BTreeMap::new();
        // The last is taken first.
        for (position, tensor) in second.iter().enumerate().rev() {
            waiting.entry(key(tensor)).or_default().push(position);
        }
        let mut pairing = Self::default();
        for (position, tensor) in first.iter().enumerate() {
            match waiting.get_mut(&key(tensor)).and_then(Vec::pop) {
                Some(other) => pairing.pairs.push((position, other)),
                None => pairing.only_first.push(position),
            }
        }
        pairing.only_second = waiting.into_values().flatten().collect();
        pairing.only_second.sort_unstable();
        pairing
    }
}

/// How names of one framework become those of another: `REGEX=NEW`, in which `$1` is the first group.
#[derive(Clone, Debug)]
pub struct Rename {
    text: String,
    regex: Regex,
    new: String,
}

impl Rename {
    /// Reads `REGEX=NEW`; the first `=` parts them.
    ///
    /// # Errors
    /// There is no `=`, or what stands before it is no regular expression.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((regex, new)) = text.split_once('=') else {
            return Err(Error::new(format!("a map is REGEX=NEW, not '{}'", escape(text))));
        };
        let regex = Regex::new(regex).map_err(|error| Error::new(error.to_string()))?;
        Ok(Self { text: text.to_owned(), regex, new: new.to_owned() })
    }

    /// As typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `name` with every match replaced.
    pub fn apply(&self, name: &str) -> String {
        self.regex.replace_all(name, self.new.as_str()).into_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn tensor(name: &str, step: Option<u64>, rank: Option<u64>) -> Identity {
        Identity { name: name.to_owned(), step, rank }
    }

    #[test]
    fn steps_and_ranks_count_only_where_there_are_several() {
        let one = |step| vec![tensor("b", Some(step), None), tensor("a", Some(step), None)];
        let crosswise = Pairing::new(&one(400), &[one(1500).remove(1), one(1500).remove(0)]);
        assert_eq!(crosswise.pairs, [(0, 1), (1, 0)]);
        let both = [one(400), one(1500)].concat();
        let of_a_run = Pairing::new(&one(1500), &both);
        assert_eq!((of_a_run.pairs, of_a_run.only_second), (vec![(0, 2), (1, 3)], vec![0, 1]));
        let ranks = [tensor("a", None, Some(1)), tensor("a", None, Some(0))];
        assert_eq!(Pairing::new(&ranks, &[tensor("a", None, Some(0))]).only_first, [0]);
    }

    #[test]
    fn what_is_called_the_same_is_paired_in_order() {
        let twice = [tensor("a", None, None), tensor("a", None, None)];
        assert_eq!(Pairing::new(&twice, &twice).pairs, [(0, 0), (1, 1)]);
        assert_eq!(Pairing::new(&twice, &twice[..1]).only_first, [1]);
        assert_eq!(Pairing::new(&twice, &[tensor("b", None, None)]).only_second, [0]);
    }

    #[test]
    fn names_are_mapped_by_groups() {
        let map = Rename::parse(r"^layers_(\d+)/(\w+)/kernel$=h.$1.${2}.weight").unwrap();
        assert_eq!(map.apply("layers_12/fc/kernel"), "h.12.fc.weight");
        assert_eq!(map.apply("other"), "other");
        assert!(Rename::parse("no equals sign").is_err());
    }
}
