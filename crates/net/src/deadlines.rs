//! Which of many is due first: a link, a host, a chain of middleboxes.
//!
//! A tournament tree over all of them: each inner node repeats the earlier of its two children, so the root is the answer
//! and moving one deadline replays one branch. Ties go to the left child, the lower number, which fixes their order.

use anabranch_units::Instant;

/// Deadlines by number, from 0.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`, number `i` sits at `leaves + i`.
    nodes: Vec<Node>,
    leaves: usize,
    members: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    at: Instant,
    member: u32,
}

impl Deadlines {
    /// Adds the next number, with nothing due.
    pub fn add(&mut self) {
        self.members += 1;
        if self.members > self.leaves {
            self.grow();
        }
    }

    /// Doubles the room, so that adding many takes time in proportion to their count.
    fn grow(&mut self) {
        let old: Vec<Node> = self.nodes.split_off(self.leaves.min(self.nodes.len()));
        self.leaves = self.members.next_power_of_two();
        self.nodes = vec![IDLE; 2 * self.leaves];
        for (member, node) in self.nodes[self.leaves..].iter_mut().enumerate() {
            *node = Node { at: old.get(member).map_or(Instant::MAX, |node| node.at), member: member as u32 };
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.earlier_child(node);
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
        while node > 1 {
            node /= 2;
            let winner = self.earlier_child(node);
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The earliest deadline and its number, the lowest of equals; `Instant::MAX` if nothing is due.
    #[inline]
    pub fn first(&self) -> (Instant, usize) {
        self.nodes.get(1).map_or((Instant::MAX, 0), |root| (root.at, root.member as usize))
    }

    fn earlier_child(&self, node: usize) -> Node {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        if left.at <= right.at { left } else { right }
    }
}

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
        fn the_root_is_the_earliest_and_lowest(members in 1usize..70, moves in prop::collection::vec((0usize..70, 0u64..9), 0..200)) {
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
