//! What the operating system is asked for: the terminal in raw mode, locks, files for nobody else, a session of one's own.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

const COLUMNS: usize = 80; // of a terminal that does not say

/// With all above it.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// A file that is made with these is for its owner alone.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(unix)]
mod with_unix {
    use super::{COLUMNS, File, OpenOptions, Path, io};
    use rustix::fs::{FlockOperation, OFlags, flock};
    use rustix::termios::{ControlModes, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    /// The terminal gives every key as it comes, Ctrl-C too, until this is dropped.
    pub struct Raw {
        before: Termios,
    }

    impl Raw {
        pub fn enter() -> io::Result<Self> {
            let before = tcgetattr(rustix::stdio::stdin())?;
            let mut raw = before.clone();
            raw.input_modes &= !(InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON);
            raw.control_modes |= ControlModes::CS8;
            raw.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
            raw.special_codes[SpecialCodeIndex::VMIN] = 1;
            raw.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw)?;
            Ok(Self { before })
        }
    }

    impl Drop for Raw {
        fn drop(&mut self) {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before); // it may have gone
        }
    }

    /// Of the terminal.
    pub fn columns() -> usize {
        tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    }

    /// For as long as the file is open. Waits for those who have it.
    pub fn lock(file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::LockExclusive)?)
    }

    /// False: somebody has it.
    pub fn try_lock(file: &File) -> bool {
        flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    pub fn keep_private(file: &File) -> io::Result<()> {
        file.set_permissions(PermissionsExt::from_mode(0o600))
    }

    /// Whatever lies there is not waited for, as a pipe would be.
    pub fn open_at_once(path: &Path) -> io::Result<File> {
        let at_once = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        super::private(OpenOptions::new().read(true).write(true).create(true).truncate(false)).custom_flags(at_once).open(path)
    }

    /// Out of the reach of Ctrl-C, and of a kill of the whole group.
    pub fn leave_session() {
        let _ = rustix::process::setsid(); // it leads one already
    }

    /// Of whoever started this process, while that lives.
    pub fn parent() -> Option<u32> {
        rustix::process::getppid().map(|id| id.as_raw_nonzero().get().unsigned_abs())
    }
}

#[cfg(not(unix))]
mod without_unix {
    use super::{COLUMNS, File, OpenOptions, Path, io};

    /// There is none: the prompt takes whole lines there.
    pub struct Raw;

    impl Raw {
        pub fn enter() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub fn columns() -> usize {
        COLUMNS
    }

    pub fn lock(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub fn try_lock(_: &File) -> bool {
        true
    }

    pub fn keep_private(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub fn open_at_once(path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
    }

    pub fn leave_session() {}

    pub fn parent() -> Option<u32> {
        None
    }
}

#[cfg(unix)]
pub use with_unix::*;
#[cfg(not(unix))]
pub use without_unix::*;
