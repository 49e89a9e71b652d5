//! The order in which each algorithm adds the ranks' gradients, and what it sends.
//!
//! Sources: <https://github.com/NVIDIA/nccl>, `src/device/all_reduce.h` at 0e35f5d, `runRing`: rank r sends chunk
//! r − 1 first, adds its own to what comes, and has chunk r complete; `src/device/reduce_scatter.h` at 0f900e1, the
//! same and no further; `src/graph/trees.cc` at 18a07ee, `ncclGetBtree` and `ncclGetDtree`: the double binary tree.
//! Thakur et al., "Optimization of Collective Communication Operations in MPICH", 2005 (recursive doubling).
//! Ranks are taken to be neighbours in the order of their numbers; NCCL orders its rings and trees by topology.

/// How the ranks' gradients are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ring all-reduce: each of as many chunks as ranks goes round once, added to by every rank.
    Ring,
    /// Ring reduce-scatter, as FSDP and ZeRO use it: the same order, and each rank keeps its own chunk.
    ReduceScatter,
    /// Pairs of ranks, then pairs of pairs.
    RecursiveDoubling,
    /// NCCL's double binary tree: half of the data up one tree, half up the other.
    Tree,
    /// One rank adds all the others to its own, in order.
    Flat,
}

/// Every algorithm with its name and meaning.
pub const ALGORITHMS: &[(&str, Algorithm, &str)] = &[
    ("ring", Algorithm::Ring, "ring all-reduce: a chunk a rank goes round, added to by each"),
    ("reduce-scatter", Algorithm::ReduceScatter, "ring reduce-scatter (FSDP, ZeRO): the ring's order"),
    ("doubling", Algorithm::RecursiveDoubling, "recursive doubling: pairs, then pairs of pairs"),
    ("tree", Algorithm::Tree, "NCCL's double binary tree"),
    ("flat", Algorithm::Flat, "one rank adds all others in order"),
];

/// A step of a sum: operands are pushed on a stack, and an addition puts the sum of the upper two in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The gradient of this rank.
    Rank(usize),
    /// A sum, rounded.
    Add,
}

impl Algorithm {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        ALGORITHMS.iter().find(|(_, algorithm, _)| *algorithm == self).map_or("", |(name, ..)| name)
    }

    /// Into how many chunks with an order of their own a tensor is cut.
    pub fn chunks(self, ranks: usize) -> usize {
        match self {
            Self::Ring | Self::ReduceScatter => ranks,
            Self::Tree => 2,
            Self::RecursiveDoubling | Self::Flat => 1,
        }
    }

    /// The sum of `ranks` ranks, at least one, in chunk number `chunk`.
    pub fn order(self, ranks: usize, chunk: usize) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(2 * ranks);
        match self {
            // Chunk c starts at rank c + 1 and ends, complete, at rank c.
            Self::Ring | Self::ReduceScatter => {
                chain(&mut tokens, (1..=ranks).map(|hop| (chunk + hop) % ranks));
            }
            Self::Flat => chain(&mut tokens, 0..ranks),
            Self::RecursiveDoubling => {
                // Ranks beyond a power of two are added to a neighbour first.
                let power = 1 << ranks.ilog2();
                let paired = ranks - power;
                let leaf = |tokens: &mut Vec<Token>, leaf: usize| match leaf < paired {
                    true => chain(tokens, [2 * leaf, 2 * leaf + 1]),
                    false => chain(tokens, [leaf + paired]),
                };
                // Carries of a binary counter: after leaf n as many additions as n + 1 has trailing zeros.
                for number in 0..power {
                    leaf(&mut tokens, number);
                    tokens.extend((0..(number + 1).trailing_zeros()).map(|_| Token::Add));
                }
            }
            Self::Tree => up_the_tree(&mut tokens, ranks, chunk, 0),
        }
        tokens
    }

    /// Elements that the busiest rank sends for each element of a tensor: partial sums, and results that go to the
    /// other ranks.
    pub fn sends(self, ranks: usize) -> (f64, f64) {
        let n = ranks as f64;
        let share = (n - 1.0) / n;
        match self {
            Self::Ring => (share, share),
            Self::ReduceScatter => (share, 0.0),
            Self::RecursiveDoubling => {
                let beyond = f64::from(u8::from(!ranks.is_power_of_two()));
                (f64::from(ranks.ilog2()), beyond)
            }
            Self::Tree => {
                let mut sent = vec![(0.0, 0.0); ranks];
                for (tree, node) in
                    [0, 1].into_iter().flat_map(|tree| (0..ranks).map(move |node| (tree, node)))
                {
                    let (up, down) = &mut sent[rank_in_tree(ranks, tree, node)];
                    *up += if node == 0 { 0.0 } else { 0.5 };
                    *down += 0.5 * children(ranks, node).iter().flatten().count() as f64;
                }
                sent.into_iter().max_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1))).unwrap_or_default()
            }
            Self::Flat => (0.0, n - 1.0),
        }
    }
}

/// The ranks one after the other.
fn chain(tokens: &mut Vec<Token>, ranks: impl IntoIterator<Item = usize>) {
    for (number, rank) in ranks.into_iter().enumerate() {
        tokens.push(Token::Rank(rank));
        tokens.extend((number > 0).then_some(Token::Add));
    }
}

/// What a node of tree number `tree` sends up: its own gradient, then its children's sums in turn.
fn up_the_tree(tokens: &mut Vec<Token>, ranks: usize, tree: usize, node: usize) {
    tokens.push(Token::Rank(rank_in_tree(ranks, tree, node)));
    for child in children(ranks, node).into_iter().flatten() {
        up_the_tree(tokens, ranks, tree, child);
        tokens.push(Token::Add);
    }
}

/// The second tree is the first one mirrored for an even number of ranks, shifted by one for an odd.
fn rank_in_tree(ranks: usize, tree: usize, node: usize) -> usize {
    match tree {
        0 => node,
        _ if ranks.is_multiple_of(2) => ranks - 1 - node,
        _ => (node + 1) % ranks,
    }
}

/// The children of a node of the tree in which a node's height is the number of its trailing zeros; 0 is the root.
fn children(ranks: usize, node: usize) -> [Option<usize>; 2] {
    if node == 0 {
        return [None, (ranks > 1).then(|| ranks.next_power_of_two() >> 1)];
    }
    let half = (1_usize << node.trailing_zeros()) >> 1;
    if half == 0 {
        return [None, None];
    }
    // To the right the tree may be cut off: the next lower node that is there.
    let right = (0..=half.ilog2()).rev().map(|height| node + (1 << height)).find(|&child| child < ranks);
    [Some(node - half), right]
}
