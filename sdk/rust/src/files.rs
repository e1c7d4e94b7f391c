//! The files of a machine. Streams: neither side ever holds a whole file.

use crate::decoding::decode;
use crate::door::{Ask, Door, SLOW_SECONDS};
use crate::error::{Error, Fallible, Kind, local};
use crate::generated::Shape;
use crate::generated::api;
use crate::generated::sentences::sentences;
use crate::inputs::{file_path, path_to_delete};
use crate::options::{awaited, paged, streamed};
use crate::packing::{pack, unpack};
use crate::pauses::Deadline;
use crate::sentences::say;
use crate::transport::{Activity, Answer, Content, Upload};
use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, try_unfold};
use reqwest::Method;
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

const CHUNK_BYTES: usize = 256 * 1024;
const FILES_A_PAGE: i64 = 1000;
const EEXIST: i32 = 17; // wherever there are numbers for errors

/// Told of bytes so far, and of how many, where that is known.
type Progress = Arc<Mutex<dyn FnMut(u64, Option<u64>) + Send>>;

/// Paths are relative to the machine's home folder, or absolute.
///
/// ```no_run
/// # async fn example(machine: everforge::Machine) -> everforge::Fallible<()> {
/// use futures::TryStreamExt;
///
/// let files = machine.files();
/// files.write("data/numbers.csv", "a,b\n1,2\n").await?;
/// files.download("data/numbers.csv", "numbers.csv").progress(|done, total| println!("{done} of {total:?}")).await?;
/// let names: Vec<String> = files.list("data").map_ok(|file| file.name).try_collect().await?;
/// files.delete("data").recursive(true).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Files {
    door: Arc<Door>,
    path: String,
}

impl Files {
    pub(crate) fn new(door: Arc<Door>, path: String) -> Self {
        Self { door, path }
    }

    fn url(&self, path: &str) -> Fallible<String> {
        Ok(self.door.url(&format!("{}/files/{}", self.path, file_path(path)?), &[]))
    }

    /// What lies in a folder, by name; pages by itself. The home folder's path is empty.
    pub fn list(&self, path: &str) -> impl Stream<Item = Fallible<api::File>> + Send + Unpin + use<> {
        unfolded(self.door.clone(), format!("{}/files", self.path), path.to_owned())
    }

    /// The whole of it, in memory. [`Self::download`] is for large ones.
    pub async fn read(&self, path: &str) -> Fallible<Vec<u8>> {
        let mut stream = self.stream(path);
        let mut body = Vec::new();
        while let Some(chunk) = stream.try_next().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The whole of it, that must be UTF-8.
    pub async fn read_text(&self, path: &str) -> Fallible<String> {
        let body = self.read(path).await?;
        String::from_utf8(body).map_err(|_| Error::new(Kind::InvalidInput, say(sentences::NOT_TEXT, &[("path", &path)])))
    }

    /// Its bytes as they come: a stream.
    pub fn stream(&self, path: impl Into<String>) -> Bytewise {
        Bytewise { files: self.clone(), path: path.into(), start: 0, running: None }
    }

    /// Whole or not at all; folders on the way are made.
    pub async fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Fallible<api::FileWritten> {
        let body = Bytes::copy_from_slice(content.as_ref());
        // The same bytes to the same place: asking again is safe.
        decode(&self.door.ask(&self.url(path)?, Ask::new(Method::PUT, Some(body)).again().slowly()).await?)
    }

    /// Whole or not at all; begins anew after a cut.
    pub fn upload(&self, local: impl Into<PathBuf>, remote: impl Into<String>) -> UploadFile {
        UploadFile { files: self.clone(), local: local.into(), remote: remote.into(), progress: None }
    }

    /// Gives its size in bytes. The local file is there when it is whole, and not before.
    pub fn download(&self, remote: impl Into<String>, local: impl Into<PathBuf>) -> DownloadFile {
        DownloadFile { files: self.clone(), local: local.into(), remote: remote.into(), progress: None }
    }

    /// A file, or a folder.
    pub async fn exists(&self, path: &str) -> Fallible<bool> {
        match get(&self.door, &self.url(path)?, 0).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_a(Kind::FileNotFound) => Ok(false),
            Err(error) if error.is_a(Kind::NotAFile) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// A file or an empty folder; with `recursive` a folder and all that is in it.
    pub fn delete(&self, path: impl Into<String>) -> DeleteFile {
        DeleteFile { files: self.clone(), path: path.into(), recursive: false }
    }

    /// All that lies in a folder, unpacked over there whole or not at all.
    pub fn upload_folder(&self, local: impl Into<PathBuf>, remote: impl Into<String>) -> UploadFolder {
        UploadFolder { files: self.clone(), local: local.into(), remote: remote.into(), progress: None }
    }

    /// Gives how many files came. What would land outside the local folder is refused.
    pub fn download_folder(&self, remote: impl Into<String>, local: impl Into<PathBuf>) -> DownloadFolder {
        DownloadFolder { files: self.clone(), local: local.into(), remote: remote.into(), progress: None }
    }

    fn archive_url(&self, path: &str) -> String {
        self.door.url(&format!("{}/archive", self.path), &[("path", Some(path.to_owned())), ("format", Some("tar".to_owned()))])
    }

    /// The same bytes to the same place: asking again is safe.
    async fn put<T: Shape>(&self, url: &str, file: &Arc<tokio::sync::Mutex<File>>, progress: Option<&Progress>) -> Fallible<T> {
        let mut tries = self.door.tries(true, Deadline::NEVER);
        loop {
            match self.put_once(url, file, progress).await {
                Ok(body) => return decode(&body),
                Err(error) => tries.after(error).await?,
            }
        }
    }

    async fn put_once(&self, url: &str, file: &Arc<tokio::sync::Mutex<File>>, progress: Option<&Progress>) -> Fallible<Vec<u8>> {
        let size = size_of(file).await.map_err(|error| local(Path::new("what is to be sent"), &error))?;
        let heard = Activity::new();
        let content = Content::Parts { size, stream: reading(file.clone(), size, progress.cloned(), heard.clone()), heard };
        let headers = [("content-type", "application/octet-stream".to_owned())];
        let mut answer = self.door.send(&Method::PUT, url, &headers, content, SLOW_SECONDS, Deadline::NEVER).await?;
        self.door.finish(&mut answer, &Method::PUT).await
    }

    async fn fetch(&self, url: &str, file: &mut File, place: &Path, progress: Option<&Progress>) -> Fallible<u64> {
        let mut tries = self.door.tries(true, Deadline::NEVER);
        loop {
            match self.fetch_once(url, file, place, progress).await {
                Ok(size) => return Ok(size),
                Err(error) => tries.after(error).await?,
            }
        }
    }

    async fn fetch_once(&self, url: &str, file: &mut File, place: &Path, progress: Option<&Progress>) -> Fallible<u64> {
        let failed = |error: std::io::Error| local(place, &error);
        file.rewind().await.map_err(failed)?;
        file.set_len(0).await.map_err(failed)?;
        let mut answer = self.door.send(&Method::GET, url, &[], Content::Nothing, SLOW_SECONDS, Deadline::NEVER).await?;
        let (total, mut size) = (answer.length_bytes(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(|broken| self.door.explained(broken, &Method::GET))? {
            file.write_all(&chunk).await.map_err(failed)?;
            size += chunk.len() as u64;
            tell(progress, size, total);
        }
        file.flush().await.map_err(failed)?;
        Ok(size)
    }
}

fn unfolded(door: Arc<Door>, path: String, folder: String) -> BoxStream<'static, Fallible<api::File>> {
    paged(None::<String>, move |after| {
        let (door, path, folder) = (door.clone(), path.clone(), folder.clone());
        Box::pin(async move {
            let query = [("path", Some(folder)), ("limit", Some(FILES_A_PAGE.to_string())), ("after", after)];
            let page: api::FileList = door.get(&path, &query).await?;
            Ok((page.files, page.next.map(Some)))
        })
    })
}

async fn get(door: &Door, url: &str, start: u64) -> Fallible<Answer> {
    let headers = if start > 0 { vec![("range", format!("bytes={start}-"))] } else { Vec::new() };
    let mut tries = door.tries(true, Deadline::NEVER);
    loop {
        match door.send(&Method::GET, url, &headers, Content::Nothing, SLOW_SECONDS, Deadline::NEVER).await {
            Ok(answer) => return Ok(answer),
            Err(error) => tries.after(error).await?,
        }
    }
}

async fn size_of(file: &tokio::sync::Mutex<File>) -> std::io::Result<u64> {
    let mut file = file.lock().await;
    let size = file.seek(SeekFrom::End(0)).await?;
    file.rewind().await?;
    Ok(size)
}

/// Exactly as much as was promised, though the file may grow meanwhile.
fn reading(file: Arc<tokio::sync::Mutex<File>>, total: u64, progress: Option<Progress>, heard: Arc<Activity>) -> Upload {
    Box::pin(try_unfold(0u64, move |size| {
        let (file, progress, heard) = (file.clone(), progress.clone(), heard.clone());
        async move {
            heard.note();
            tell(progress.as_ref(), size, Some(total));
            let wanted = (total - size).min(CHUNK_BYTES as u64);
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            (&mut *file.lock().await).take(wanted).read_to_end(&mut chunk).await?;
            let behind = size + chunk.len() as u64;
            Ok(if chunk.is_empty() { None } else { Some((Bytes::from(chunk), behind)) })
        }
    }))
}

fn tell(progress: Option<&Progress>, size: u64, total: Option<u64>) {
    if let Some(progress) = progress.filter(|_| size > 0) {
        (progress.lock().unwrap_or_else(PoisonError::into_inner))(size, total);
    }
}

/// What was begun and is not whole is not left lying about.
struct Partial(Option<PathBuf>);

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = std::fs::remove_file(place);
        }
    }
}

/// The bytes of a file: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Bytewise {
    files: Files,
    path: String,
    start: u64,
    running: Option<BoxStream<'static, Fallible<Bytes>>>,
}

impl Bytewise {
    /// From this byte on.
    pub fn from(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<Bytes>> {
        let (files, path, start) = (self.files.clone(), self.path.clone(), self.start);
        let begun = async move {
            let answer = get(&files.door, &files.url(&path)?, start).await?;
            Ok(try_unfold((files.door, answer), |(door, mut answer)| async move {
                match answer.chunk().await {
                    Ok(chunk) => Ok(chunk.map(|chunk| (chunk, (door, answer)))),
                    Err(broken) => Err(door.explained(broken, &Method::GET)),
                }
            }))
        };
        futures::stream::once(begun).try_flatten().boxed()
    }
}

streamed!(Bytewise => Bytes);

macro_rules! transfer {
    ($(#[$doc:meta])* $name:ident => $output:ty) => {
        $(#[$doc])*
        #[must_use = "nothing is carried over before .await"]
        pub struct $name {
            files: Files,
            local: PathBuf,
            remote: String,
            progress: Option<Progress>,
        }

        impl $name {
            /// Told of bytes so far, and of how many, where that is known.
            pub fn progress(mut self, told: impl FnMut(u64, Option<u64>) + Send + 'static) -> Self {
                self.progress = Some(Arc::new(Mutex::new(told)));
                self
            }
        }

        awaited!($name => $output);
    };
}

transfer! {
    /// A file on its way to the machine, to be sent with `.await`.
    UploadFile => api::FileWritten
}

impl UploadFile {
    async fn send(self) -> Fallible<api::FileWritten> {
        let url = self.files.url(&self.remote)?;
        let file = File::open(&self.local).await.map_err(|error| local(&self.local, &error))?;
        let is_folder = file.metadata().await.is_ok_and(|status| status.is_dir());
        if is_folder {
            return Err(local(&self.local, &std::io::Error::from(std::io::ErrorKind::IsADirectory)));
        }
        self.files.put(&url, &Arc::new(tokio::sync::Mutex::new(file)), self.progress.as_ref()).await
    }
}

transfer! {
    /// A file on its way here, to be fetched with `.await`.
    DownloadFile => u64
}

impl DownloadFile {
    async fn send(self) -> Fallible<u64> {
        let url = self.files.url(&self.remote)?;
        // Of the file that was asked for: nobody knows the name of the one beside it.
        let failed = |error: std::io::Error| local(&self.local, &error);
        let name = self.local.file_name().ok_or_else(|| failed(std::io::ErrorKind::IsADirectory.into()))?.to_string_lossy();
        if !is_replaceable(&self.local) {
            return Err(failed(std::io::Error::from_raw_os_error(EEXIST)));
        }
        let place = self.local.with_file_name(format!(".{name}.{}.part", &crate::door::new_key()?[..8]));
        let mut file = File::options().write(true).create_new(true).open(&place).await.map_err(failed)?;
        let mut partial = Partial(Some(place.clone()));
        let size = self.files.fetch(&url, &mut file, &self.local, self.progress.as_ref()).await?;
        drop(file);
        tokio::fs::rename(&place, &self.local).await.map_err(failed)?;
        partial.0 = None;
        Ok(size)
    }
}

/// A device or a pipe would be gone afterwards, and so would a name of what a process has open, as /dev/stdout is: a link into /proc.
fn is_replaceable(target: &Path) -> bool {
    if std::fs::read_link(target).is_ok_and(|place| place.starts_with("/proc")) {
        return false;
    }
    // Where there is none, or none to be seen, whoever writes it says what is wrong.
    std::fs::metadata(target).map_or(true, |found| found.is_file() || found.is_dir())
}

transfer! {
    /// A folder on its way to the machine, to be sent with `.await`.
    UploadFolder => api::Unpacked
}

impl UploadFolder {
    async fn send(self) -> Fallible<api::Unpacked> {
        let url = self.files.archive_url(&self.remote);
        let source = self.local.clone();
        let packed = off_loop(move || {
            let mut file = tempfile::tempfile().map_err(|error| local(&std::env::temp_dir(), &error))?;
            pack(&source, &mut file)?;
            Ok(file)
        });
        let file = Arc::new(tokio::sync::Mutex::new(File::from_std(packed.await?)));
        self.files.put(&url, &file, self.progress.as_ref()).await
    }
}

transfer! {
    /// A folder on its way here, to be fetched with `.await`.
    DownloadFolder => usize
}

impl DownloadFolder {
    async fn send(self) -> Fallible<usize> {
        let url = self.files.archive_url(&self.remote);
        let file = tempfile::tempfile().map_err(|error| local(&std::env::temp_dir(), &error))?;
        let mut file = File::from_std(file);
        self.files.fetch(&url, &mut file, &std::env::temp_dir(), self.progress.as_ref()).await?;
        let mut file = file.into_std().await;
        off_loop(move || unpack(&mut file, &self.local)).await
    }
}

/// What touches the disk for long.
async fn off_loop<T: Send + 'static>(work: impl FnOnce() -> Fallible<T> + Send + 'static) -> Fallible<T> {
    let stopped = |error| Err(Error::new(Kind::ClientError, format!("the work on this computer's files was stopped: {error}")));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(stopped)
}

/// A file or a folder, to be deleted with `.await`.
#[must_use = "nothing is deleted before .await"]
pub struct DeleteFile {
    files: Files,
    path: String,
    recursive: bool,
}

impl DeleteFile {
    /// A folder and all that is in it.
    pub fn recursive(mut self, recursive: bool) -> Self {
        self.recursive = recursive;
        self
    }

    async fn send(self) -> Fallible<()> {
        let path = format!("{}/files/{}", self.files.path, path_to_delete(&self.path)?);
        self.files.door.delete(&path, &[("recursive", self.recursive.then(|| "true".to_owned()))]).await
    }
}

awaited!(DeleteFile => ());

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_are_replaced_and_links_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe, opened] = ["file", "link", "pipe", "opened"].map(|name| folder.path().join(name));
        std::fs::write(&file, "").unwrap();
        symlink("file", &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink("/proc/self/exe", &opened).unwrap(); // as /dev/stdout is
        let found = [&file, &link, &folder.path().join("none"), &pipe, &opened].map(|path| is_replaceable(path));
        assert_eq!(found, [true, true, true, false, false]);
        std::fs::remove_file(&link).unwrap();
        symlink("pipe", &link).unwrap();
        assert!(!is_replaceable(&link));
    }
}
