//! Which of many links is due first.
//!
//! A tournament tree over all links: each inner node repeats the earlier of its two children, so the root is the answer
//! and moving one deadline replays one branch. Ties go to the left child, the lower link, which fixes their order.

use anabranch_units::Instant;

#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`, link `i` sits at `leaves + i`.
    nodes: Vec<Node>,
    leaves: usize,
    links: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    at: Instant,
    link: u32,
}

impl Deadlines {
    /// One more link, with nothing due.
    pub(crate) fn add(&mut self) {
        let old: Vec<Instant> = (0..self.links).map(|i| self.nodes[self.leaves + i].at).collect();
        self.links += 1;
        self.leaves = self.links.next_power_of_two();
        self.nodes = vec![IDLE; 2 * self.leaves];
        for link in 0..self.leaves {
            self.nodes[self.leaves + link].link = link as u32;
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.earlier_child(node);
        }
        for (link, at) in old.into_iter().enumerate() {
            self.set(link, at);
        }
    }

    /// Link `link` is due at `at`; `Instant::MAX` if nothing is.
    #[inline]
    pub(crate) fn set(&mut self, link: usize, at: Instant) {
        let mut node = self.leaves + link;
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

    /// The earliest deadline and its link.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, usize) {
        self.nodes.get(1).map_or((Instant::MAX, 0), |root| (root.at, root.link as usize))
    }

    fn earlier_child(&self, node: usize) -> Node {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        if left.at <= right.at { left } else { right }
    }
}

const IDLE: Node = Node { at: Instant::MAX, link: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_links_nothing_is_due() {
        assert_eq!(Deadlines::default().first().0, Instant::MAX);
    }

    proptest! {
        #[test]
        fn the_root_is_the_earliest_and_lowest(links in 1usize..70, moves in prop::collection::vec((0usize..70, 0u64..9), 0..200)) {
            let mut tree = Deadlines::default();
            let mut plain = Vec::new();
            for (n, (link, at)) in moves.into_iter().enumerate() {
                if n < links {
                    tree.add();
                    plain.push(Instant::MAX);
                }
                let (link, at) = (link % plain.len(), Instant::from_nanos(at));
                tree.set(link, at);
                plain[link] = at;
                let earliest = *plain.iter().min().expect("there is a link");
                let lowest = plain.iter().position(|&t| t == earliest).expect("the earliest is among them");
                prop_assert_eq!(tree.first(), (earliest, lowest));
            }
        }
    }
}
