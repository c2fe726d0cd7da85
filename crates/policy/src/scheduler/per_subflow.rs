//! State that a scheduler keeps of each subflow, in step with the view.

use crate::SubflowView;
use anabranch_units::SubflowId;

/// One `T` per subflow of the latest view, in its order. What belongs to a subflow that the view no longer shows is
/// forgotten; if it returns it begins anew.
pub(super) struct PerSubflow<T>(Vec<(SubflowId, T)>);

/// Starts without subflows.
impl<T> Default for PerSubflow<T> {
    fn default() -> Self {
        PerSubflow(Vec::new())
    }
}

impl<T> PerSubflow<T> {
    /// Takes the subflows of a view, `first` for each new one. True if they are others than before.
    pub fn follow(&mut self, subflows: &[SubflowView], mut first: impl FnMut(&SubflowView) -> T) -> bool {
        let same = self.0.len() == subflows.len() && self.0.iter().zip(subflows).all(|((id, _), new)| *id == new.id);
        if same {
            return false;
        }
        self.0.retain(|(id, _)| subflows.iter().any(|subflow| subflow.id == *id));
        for (at, subflow) in subflows.iter().enumerate() {
            // Both are ordered by id, and the rest of ours is a subset of theirs.
            if self.0.get(at).is_none_or(|(id, _)| *id != subflow.id) {
                self.0.insert(at, (subflow.id, first(subflow)));
            }
        }
        true
    }

    /// Returns the state of subflow `id`.
    pub fn of(&mut self, id: SubflowId) -> Option<&mut T> {
        self.0.iter_mut().find(|(known, _)| *known == id).map(|(_, kept)| kept)
    }

    /// All, in the order of the view.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, kept)| kept)
    }

    /// All, in the order of the view.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, kept)| kept)
    }
}

/// Indexes by place in the view.
impl<T> std::ops::Index<usize> for PerSubflow<T> {
    type Output = T;
    fn index(&self, at: usize) -> &T {
        &self.0[at].1
    }
}

impl<T> std::ops::IndexMut<usize> for PerSubflow<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.0[at].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;

    #[test]
    fn keeps_step_with_the_view() {
        let subflows = |ids: &[u16]| ids.iter().map(|id| subflow(SubflowId(*id), 10, 10, 0)).collect::<Vec<_>>();
        let mut kept = PerSubflow::default();
        let mut next = 0;
        for (ids, changed, expected) in [
            (&[1, 3][..], true, &[1, 2][..]),
            (&[1, 3], false, &[1, 2]),
            (&[0, 1, 2, 3, 4], true, &[3, 1, 4, 2, 5]),
            (&[2, 4], true, &[4, 5]),
            (&[1, 2, 3], true, &[6, 4, 7]),
            (&[], true, &[]),
        ] {
            let number = |_: &SubflowView| {
                next += 1;
                next
            };
            assert_eq!(kept.follow(&subflows(ids), number), changed, "{ids:?}");
            assert_eq!(kept.iter().copied().collect::<Vec<_>>(), expected, "{ids:?}");
        }
    }
}
