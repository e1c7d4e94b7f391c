//! Requests of the SDK, given what was given, and not what was not.

pub trait Optional: Sized {
    /// As it is, when there is nothing to set.
    fn with<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }
}

impl<R> Optional for R {}

/// None, when there are none.
pub fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    if items.is_empty() { None } else { Some(items) }
}
