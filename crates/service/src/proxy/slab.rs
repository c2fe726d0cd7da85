//! Things by small numbers that are used again.

/// A vector with holes. What is being worked on is taken out and put back.
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// A place of its own for something that will be `put` there.
    pub(super) fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
    }

    pub(super) fn put(&mut self, at: usize, thing: T) {
        self.places[at] = Some(thing);
    }

    pub(super) fn take(&mut self, at: usize) -> Option<T> {
        self.places.get_mut(at)?.take()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.places.get_mut(at)?.as_mut()
    }

    /// The place is free again; what was there has been taken.
    pub(super) fn release(&mut self, at: usize) {
        debug_assert!(self.places[at].is_none(), "what is in a place has been taken before it is released");
        self.free.push(at);
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(at, place)| place.as_ref().map(|thing| (at, thing)))
    }
}
