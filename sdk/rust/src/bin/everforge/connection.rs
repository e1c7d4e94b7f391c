//! The SDK, as a command uses it.

use crate::failures::{Done, Failure};
use crate::names::near_names;
use everforge::{Everforge, Kind, Machine};

/// To the server of the environment, of `everforge login`, or of this computer.
pub fn connected() -> Done<Everforge> {
    Ok(Everforge::new()?)
}

/// One that is there already; a name that is not is answered with the near ones.
pub async fn machine_named<T, F>(name: &str, work: impl FnOnce(Machine) -> F) -> Done<T>
where
    F: Future<Output = Done<T>>,
{
    let machine = connected()?.machine(name)?;
    suggesting(Some(name), work(machine)).await
}

/// That there is no machine of this name is said with the near ones, by whoever was asked for it; None: none was named.
pub async fn suggesting<T>(name: Option<&str>, work: impl Future<Output = Done<T>>) -> Done<T> {
    match (work.await, name) {
        (Err(Failure::Refused(mut error)), Some(name)) if error.is_a(Kind::MachineNotFound) => {
            error.message = format!("{}{}", error.message.trim_end_matches('.'), near_names(name).await);
            Err(Failure::Refused(error))
        }
        (found, _) => found,
    }
}
