//! The two directions of a path.

/// Direction of data on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Direction {
    /// From server to client, as in downloads.
    #[default]
    Down,
    /// From client to server.
    Up,
}

impl Direction {
    /// The other one.
    pub const fn reversed(self) -> Self {
        match self {
            Direction::Down => Direction::Up,
            Direction::Up => Direction::Down,
        }
    }
}

/// Directions of a path that a change affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Affected {
    /// Both.
    #[default]
    Both,
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

/// One for each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerDirection<T> {
    /// From server to client.
    pub down: T,
    /// From client to server.
    pub up: T,
}

impl<T> PerDirection<T> {
    /// The one for this direction.
    #[inline]
    pub fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// The one for this direction.
    #[inline]
    pub fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}
