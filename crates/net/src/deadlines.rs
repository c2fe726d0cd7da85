//! The first of many deadlines: a link, a host, a chain of middleboxes.
//!
//! A tournament over all of them, four at a time: each inner node repeats the earliest of its four children, so the
//! root is the answer and moving one deadline replays one branch. Ties go to the lower number, which fixes their order.
//! The four links of two paths are one round.

use anabranch_units::Instant;

/// Deadlines by number, from 0.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    /// Node 0 is the root, node `n` has the children `4n + 1` to `4n + 4`, number `i` sits at `leaves + i`.
    nodes: Vec<Node>,
    /// A copy of node 0, which is read more often than it changes.
    root: Node,
    leaves: usize,
    members: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    at: Instant,
    member: u32,
}

impl Default for Node {
    fn default() -> Self {
        IDLE
    }
}

impl Deadlines {
    /// Adds the next number, with nothing due.
    pub fn add(&mut self) {
        self.members += 1;
        if self.leaves + self.members > self.nodes.len() {
            self.grow();
        }
    }

    /// Makes four times the room, so that adding many takes time in proportion to their count.
    fn grow(&mut self) {
        let old = self.nodes.split_off(self.leaves);
        let width = (old.len() * FAN).max(1);
        self.leaves = (width - 1) / (FAN - 1);
        self.nodes = vec![IDLE; self.leaves + width];
        for (member, node) in self.nodes[self.leaves..].iter_mut().enumerate() {
            *node = Node { at: old.get(member).map_or(Instant::MAX, |node| node.at), member: member as u32 };
        }
        for node in (0..self.leaves).rev() {
            self.nodes[node] = self.earliest_child(node);
        }
    }

    /// Number `member` is due at `at`; `Instant::MAX` for never.
    #[inline]
    pub fn set(&mut self, member: usize, at: Instant) {
        let mut node = self.leaves + member;
        if self.nodes[node].at == at {
            return;
        }
        self.nodes[node].at = at;
        while node > 0 {
            node = (node - 1) / FAN;
            let winner = self.earliest_child(node);
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
        self.root = self.nodes[0];
    }

    /// The earliest deadline and its number, the lowest of equals; `Instant::MAX` if nothing is due.
    #[inline]
    pub fn first(&self) -> (Instant, usize) {
        (self.root.at, self.root.member as usize)
    }

    #[inline]
    fn earliest_child(&self, node: usize) -> Node {
        let children = &self.nodes[FAN * node + 1..][..FAN];
        children[1..].iter().fold(children[0], |earliest, child| if child.at < earliest.at { *child } else { earliest })
    }
}

/// Children of a node.
const FAN: usize = 4;
const IDLE: Node = Node { at: Instant::MAX, member: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_members_nothing_is_due() {
        assert_eq!(Deadlines::default().first().0, Instant::MAX);
    }

    proptest! {
        #[test]
        fn the_root_is_the_earliest_and_lowest(
            members in 1usize..70,
            moves in prop::collection::vec((0usize..70, 0u64..9), 0..200),
        ) {
            let mut tree = Deadlines::default();
            let mut plain = Vec::new();
            for (n, (member, at)) in moves.into_iter().enumerate() {
                if n < members {
                    tree.add();
                    plain.push(Instant::MAX);
                }
                let (member, at) = (member % plain.len(), Instant::from_nanos(at));
                tree.set(member, at);
                plain[member] = at;
                let earliest = *plain.iter().min().expect("there is a link");
                let lowest = plain.iter().position(|&t| t == earliest).expect("the earliest is among them");
                prop_assert_eq!(tree.first(), (earliest, lowest));
            }
        }
    }
}
