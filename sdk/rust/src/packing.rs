//! Folders of this computer as archives, and back. Blocks: whoever has an event loop calls it off that.

use crate::error::{Error, Fallible, Kind, invalid, local};
use crate::generated::sentences::sentences;
use crate::quoting::quoted;
use crate::sentences::say;
use std::cell::Cell;
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};
use tar::{Archive, Builder, Entry, EntryType, Header};

const NAME_BYTES_MAX: usize = 4096; // of a path: systems take no longer ones
const ABOUT_BYTES_MAX: u64 = 1024 * 1024; // that an archive may say about one entry before its content comes

/// What lies in it, with names relative to it. Sockets, pipes and devices have nothing to carry over, and are left out.
pub(crate) fn pack(source: &Path, target: &mut File) -> Fallible<()> {
    if !source.is_dir() {
        return Err(invalid(say(sentences::NOT_A_FOLDER, &[("path", &source.display())])));
    }
    let mut archive = Builder::new(io::BufWriter::new(target));
    let mut waiting = listed(source, Path::new(""))?;
    // A heap of our own: folders may lie deeper in each other than the stack is.
    while let Some((place, name)) = waiting.pop() {
        let is_folder = pack_one(&mut archive, &place, &name).map_err(|error| local(&place, &error))?;
        if is_folder {
            waiting.extend(listed(&place, &name)?);
        }
    }
    let mut written = archive.into_inner().map_err(|error| local(source, &error))?;
    written.flush().map_err(|error| local(source, &error))
}

/// Where each entry of a folder lies and what it is called in the archive, the last first.
fn listed(folder: &Path, name: &Path) -> Fallible<Vec<(PathBuf, PathBuf)>> {
    let found = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = found.map_err(|error| local(folder, &error))?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
    Ok(entries.into_iter().map(|entry| (entry.path(), name.join(entry.file_name()))).collect())
}

/// Is it a folder, whose content is to follow?
fn pack_one(archive: &mut Builder<impl Write>, place: &Path, name: &Path) -> io::Result<bool> {
    let status = fs::symlink_metadata(place)?;
    let mut header = header(&status);
    if status.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        archive.append_link(&mut header, name, fs::read_link(place)?)?;
    } else if status.is_dir() {
        header.set_entry_type(EntryType::Directory);
        archive.append_data(&mut header, name, io::empty())?;
        return Ok(true);
    } else if status.is_file() {
        header.set_size(status.len());
        // Exactly as much as was promised, though the file may grow meanwhile.
        let mut content = File::open(place)?.take(status.len());
        archive.append_data(&mut header, name, &mut content)?;
        if content.limit() > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"));
        }
    }
    Ok(false)
}

fn header(status: &Metadata) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(mode_of(status));
    let modified = status.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    header.set_mtime(modified.map_or(0, |time| time.as_secs()));
    header.set_size(0);
    header
}

#[cfg(unix)]
fn mode_of(status: &Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(status) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(status: &Metadata) -> u32 {
    if status.is_dir() { 0o755 } else { 0o644 }
}

// --- and back --------------------------------------------------------------------------------------------------------------------------------

/// How many files. The archive comes from a machine, whose code may be anyone's: nothing may land or lead outside the folder, and no device.
pub(crate) fn unpack(source: &mut (impl Read + Seek), target: &Path) -> Fallible<usize> {
    fs::create_dir_all(target).map_err(|error| local(target, &error))?;
    let root = fs::canonicalize(target).map_err(|error| local(target, &error))?;
    source.rewind().map_err(|error| local(target, &error))?;
    let (mut links, limit) = (Vec::new(), Rc::new(Cell::new(0)));
    let source = Measured { source: io::BufReader::new(source), limit: limit.clone() };
    let found = unpack_all(&mut Archive::new(source), &limit, &root, &mut links);
    // None leads out by itself; but one may pass through a link that was in the folder before.
    let strays: Vec<PathBuf> = links.into_iter().filter(|link| link.is_symlink() && !is_inside(&root, link)).collect();
    for stray in &strays {
        let _ = fs::remove_file(stray);
    }
    match strays.first() {
        Some(stray) => Err(outside(&stray.strip_prefix(&root).unwrap_or(stray).to_string_lossy(), &root)),
        None => found,
    }
}

/// What an archive says about its entries is held in memory, unlike their content: of that there is a limit.
struct Measured<R> {
    source: R,
    limit: Rc<Cell<u64>>,
}

impl<R: Read> Read for Measured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.source.read(buffer)?;
        let rest = self.limit.get().checked_sub(size as u64);
        self.limit.set(rest.ok_or_else(|| io::Error::other("it says too much about one entry"))?);
        Ok(size)
    }
}

fn unpack_all(archive: &mut Archive<impl Read>, limit: &Cell<u64>, root: &Path, links: &mut Vec<PathBuf>) -> Fallible<usize> {
    let mut files = 0;
    let mut entries = archive.entries().map_err(|error| unreadable(&error))?;
    loop {
        limit.set(ABOUT_BYTES_MAX);
        let Some(entry) = entries.next() else { return Ok(files) };
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        limit.set(u64::MAX);
        unpack_one(&mut entry, root, links)?;
        files += usize::from(!entry.header().entry_type().is_dir());
        io::copy(&mut entry, &mut io::sink()).map_err(|error| unreadable(&error))?;
    }
}

fn unpack_one(entry: &mut Entry<'_, impl Read>, root: &Path, links: &mut Vec<PathBuf>) -> Fallible<()> {
    let kind = entry.header().entry_type();
    let name = entry.path().map_err(|error| unreadable(&error))?.into_owned();
    let place = place_of(root, &name, kind.is_dir())?;
    let failed = |error: io::Error| local(&place, &error);
    if kind.is_dir() {
        return fs::create_dir_all(&place).map_err(failed);
    }
    fs::create_dir_all(place.parent().unwrap_or(root)).map_err(failed)?;
    if place.is_symlink() || place.is_file() {
        fs::remove_file(&place).map_err(failed)?;
    }
    match kind {
        EntryType::Regular | EntryType::Continuous => write_file(entry, &place).map_err(failed),
        EntryType::Link => {
            let target = entry.link_name().map_err(|error| unreadable(&error))?.unwrap_or_default().into_owned();
            let original = place_of(root, &target, false)?;
            if original.is_symlink() || !original.is_file() {
                return Err(outside(&name.to_string_lossy(), root));
            }
            fs::copy(original, &place).map(|_| ()).map_err(failed)
        }
        EntryType::Symlink => {
            let target = entry.link_name().map_err(|error| unreadable(&error))?.unwrap_or_default().into_owned();
            check_link(root, &place, &name, &target)?;
            make_link(&target, &place).map_err(failed)?;
            links.push(place);
            Ok(())
        }
        _ => Err(refused(say(sentences::ARCHIVE_KIND, &[("name", &quoted(&name.to_string_lossy()))]))),
    }
}

fn write_file(entry: &mut Entry<'_, impl Read>, place: &Path) -> io::Result<()> {
    let mut file = File::create_new(place)?;
    let size = entry.size();
    if io::copy(entry, &mut file)? != size {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its content is not whole in the archive"));
    }
    #[cfg(unix)]
    {
        let mode = entry.header().mode()? & 0o755 | 0o600;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }
    let time = Duration::from_secs(entry.header().mtime()?);
    UNIX_EPOCH.checked_add(time).map_or(Ok(()), |time| file.set_modified(time))
}

#[cfg(unix)]
fn make_link(target: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

#[cfg(not(unix))]
fn make_link(_target: &Path, _place: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "links cannot be made here"))
}

/// In its folder as that really is, now: a link made by an earlier entry may lead to another.
fn place_of(root: &Path, name: &Path, is_folder: bool) -> Fallible<PathBuf> {
    let refuse = || outside(&name.to_string_lossy(), root);
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    if name.as_os_str().len() > NAME_BYTES_MAX {
        return Err(unreadable(&"a name in it is too long"));
    }
    for part in name.components() {
        match part {
            Component::Normal(part) if !part.as_encoded_bytes().contains(&0) => parts.push(part),
            Component::CurDir => {}
            _ => return Err(refuse()),
        }
    }
    let Some((last, folders)) = parts.split_last() else {
        return if is_folder { Ok(root.to_owned()) } else { Err(refuse()) };
    };
    let folder = real(&folders.iter().fold(root.to_owned(), |path, part| path.join(part))).filter(|folder| folder.starts_with(root));
    Ok(folder.ok_or_else(refuse)?.join(last))
}

/// Where a path really leads, though its end may not be there yet. None where a link on the way leads nowhere.
fn real(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    Some(fs::canonicalize(there).ok()?.join(path.strip_prefix(there).ok()?))
}

fn is_inside(root: &Path, place: &Path) -> bool {
    match fs::canonicalize(place) {
        Ok(real) => real.starts_with(root),
        // It leads to what is not there: as far as it goes.
        Err(_) => fs::read_link(place).is_ok_and(|target| {
            let whole = place.parent().unwrap_or(root).join(target);
            flattened(&whole).and_then(|path| real(&path)).is_some_and(|path| path.starts_with(root))
        }),
    }
}

/// Without `..`, which here only stand before all names.
fn flattened(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |mut made, part| match part {
        Component::ParentDir => made.pop().then_some(made),
        other => {
            made.push(other);
            Some(made)
        }
    })
}

/// It goes up first, no further than to the root, and then only down.
///
/// So it stays inside whatever is made later: its own folder is real and stays one, and what it passes on its way down is a folder, or a link of
/// which the same is true. Behind a name, `..` would mean another folder once that name is a link.
fn check_link(root: &Path, place: &Path, name: &Path, target: &Path) -> Fallible<()> {
    let depth = place.parent().and_then(|folder| folder.strip_prefix(root).ok()).map_or(0, |inside| inside.components().count());
    let (mut ups, mut is_down) = (0, false);
    for part in target.components() {
        match part {
            Component::ParentDir if !is_down => ups += 1,
            Component::Normal(part) if !part.as_encoded_bytes().contains(&0) => is_down = true,
            Component::CurDir => {}
            Component::ParentDir => return Err(dots(name, target, root)),
            _ => return Err(outside(&name.to_string_lossy(), root)),
        }
    }
    if target.as_os_str().is_empty() || ups > depth { Err(outside(&name.to_string_lossy(), root)) } else { Ok(()) }
}

fn outside(name: &str, root: &Path) -> Error {
    refused(say(sentences::ARCHIVE_OUTSIDE, &[("name", &quoted(name)), ("folder", &root.display())]))
}

fn dots(name: &Path, to: &Path, root: &Path) -> Error {
    let words = [name, to].map(|path| quoted(&path.to_string_lossy()));
    refused(say(sentences::ARCHIVE_DOTS, &[("name", &words[0]), ("to", &words[1]), ("folder", &root.display())]))
}

fn unreadable(why: &dyn Display) -> Error {
    refused(say(sentences::ARCHIVE_UNREADABLE, &[("why", why)]))
}

fn refused(message: String) -> Error {
    Error::new(Kind::ArchiveRefused, message)
}

#[cfg(all(test, unix))]
mod tests;
