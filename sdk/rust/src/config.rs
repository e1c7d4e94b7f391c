//! Where a client finds its server and its token.
//!
//! A token is a secret of one server, so that token and address always come from one and the same source; the first source that has both wins.

use crate::error::{Error, Fallible, Kind, invalid, reason_of};
use crate::generated::sentences::sentences;
use crate::quoting::quoted;
use crate::sentences::say;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::{env, fmt};

const FILE_BYTES_MAX: u64 = 64 * 1024; // a configuration is a few lines
const TOKEN_CHARACTERS_MAX: usize = 1024;
const SYSTEM_DATA: &str = "/var/lib/everforge"; // of a system service, which has no home

/// What it takes to reach a server.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// Without a slash at its end.
    pub base_url: String,
    /// A secret.
    pub token: String,
    /// For messages: where it was found.
    pub source: String,
}

impl Access {
    /// Of an address and a token, looked at: `InvalidInput` when either cannot be one.
    pub fn new(base_url: &str, token: &str) -> Fallible<Self> {
        Self::found(base_url, token, "the arguments")
    }

    fn found(base_url: &str, token: &str, source: impl Into<String>) -> Fallible<Self> {
        Ok(Self { base_url: check_url(base_url)?, token: check_token(token)?, source: source.into() })
    }

    /// Before there is a token.
    pub(crate) fn stranger(base_url: &str) -> Fallible<Self> {
        Ok(Self { base_url: check_url(base_url)?, token: String::new(), source: String::new() })
    }

    /// By somebody who means this server; else it is what the server on this computer left.
    pub fn was_given(&self) -> bool {
        self.source != owner_token().display().to_string()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is nobody's to see.
        f.debug_struct("Access").field("base_url", &self.base_url).field("source", &self.source).finish_non_exhaustive()
    }
}

/// What was given, else the environment, else the files of `everforge login`, else the server on this computer.
pub fn find_access(token: Option<&str>, base_url: Option<&str>) -> Fallible<Access> {
    match (token, base_url) {
        (Some(token), Some(base_url)) => Access::new(base_url, token),
        (Some(token), None) => Access::new(&local_or(sentences::NO_ADDRESS)?, token),
        (None, None) => Ok(first_source(None)?.ok_or_else(|| Error::new(Kind::ServerUnknown, sentences::NO_SERVER))?),
        (None, Some(base_url)) => {
            let wanted = check_url(base_url)?;
            Ok(first_source(Some(&wanted))?.ok_or_else(|| bad(say(sentences::NO_TOKEN, &[("url", &wanted)])))?)
        }
    }
}

type Source = fn() -> Fallible<Option<Access>>;

/// The first that has both, of this server where one is wanted. A source behind it is not even looked at.
fn first_source(wanted: Option<&str>) -> Fallible<Option<Access>> {
    let sources: [Source; 5] = [from_environment, || from_file(&config_path()), from_forevervm, || from_file(&forevervm_path()), local];
    for source in sources {
        match source()? {
            Some(access) if wanted.is_none_or(|url| access.base_url == url) => return Ok(Some(access)),
            _ => {}
        }
    }
    Ok(None)
}

fn from_environment() -> Fallible<Option<Access>> {
    match (variable("EVERFORGE_TOKEN"), variable("EVERFORGE_URL")) {
        (Some(token), Some(url)) => Access::found(&url, &token, "EVERFORGE_TOKEN").map(Some),
        (Some(token), None) => Access::found(&local_or(sentences::ENVIRONMENT_NO_ADDRESS)?, &token, "EVERFORGE_TOKEN").map(Some),
        (None, Some(url)) => token_for(&check_url(&url)?).map(Some),
        (None, None) => Ok(None),
    }
}

/// `EVERFORGE_URL` alone names a server whose token lies in a file.
fn token_for(url: &str) -> Fallible<Access> {
    let found = [from_file(&config_path())?, local()?];
    found.into_iter().flatten().find(|access| access.base_url == url).ok_or_else(|| bad(say(sentences::ENVIRONMENT_NO_TOKEN, &[("url", &url)])))
}

fn from_forevervm() -> Fallible<Option<Access>> {
    // One alone is meant for another service.
    let (Some(token), Some(url)) = (variable("FOREVERVM_TOKEN"), variable("FOREVERVM_BASE_URL")) else { return Ok(None) };
    Access::found(&url, &token, "FOREVERVM_TOKEN").map(Some)
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Kind::ConfigurationBad, message)
}

// --- files ---------------------------------------------------------------------------------------------------------------------------

/// Of the file that `everforge login` writes.
pub fn config_path() -> PathBuf {
    config_home().join("everforge").join("config.json")
}

fn forevervm_path() -> PathBuf {
    config_home().join("forevervm").join("config.json")
}

fn config_home() -> PathBuf {
    absolute("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config"))).unwrap_or_else(|| PathBuf::from("/etc/xdg"))
}

/// The XDG rules: a relative path there is to be ignored.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn home() -> Option<PathBuf> {
    #[allow(deprecated)] // it was for a while, for the sake of another system than those that it is meant for
    env::home_dir().filter(|path| !path.as_os_str().is_empty())
}

/// What the server on this computer keeps: `EVERFORGE_DATA`, else the user's data folder.
pub fn data_folder() -> PathBuf {
    folder("EVERFORGE_DATA", "XDG_DATA_HOME", ".local/share")
}

/// What nobody misses for long, as what was typed at the prompt: `EVERFORGE_STATE`, else the user's state folder.
pub fn state_folder() -> PathBuf {
    folder("EVERFORGE_STATE", "XDG_STATE_HOME", ".local/state")
}

fn folder(chosen: &str, base: &str, below_home: &str) -> PathBuf {
    if let Some(chosen) = variable(chosen) {
        let path = match (chosen.strip_prefix("~/"), home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if chosen == "~" => home().unwrap_or_else(|| PathBuf::from(&chosen)),
            _ => PathBuf::from(&chosen),
        };
        return std::path::absolute(&path).unwrap_or(path);
    }
    if let Some(base) = absolute(base) {
        return base.join("everforge");
    }
    let system = || Path::new(SYSTEM_DATA).join(Path::new(below_home).file_name().unwrap_or_default());
    home().map_or_else(system, |home| home.join(below_home).join("everforge"))
}

/// For the next time: where it lies now. Mode 0600, whole or not at all.
pub fn write_config(access: &Access) -> io::Result<PathBuf> {
    let path = config_path();
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_private_folder(folder)?;
    let mut file = tempfile::Builder::new().prefix(".config.").tempfile_in(folder)?; // created with mode 0600
    file.write_all(json!({"token": access.token, "server_url": access.base_url}).to_string().as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?; // rename after fsync
    Ok(path)
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Was there one?
pub fn delete_config() -> io::Result<bool> {
    match fs::remove_file(config_path()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn from_file(path: &Path) -> Fallible<Option<Access>> {
    let Some(text) = read_private(path)? else { return Ok(None) };
    let found: Value = serde_json::from_str(&text).map_err(|_| bad(say(sentences::CONFIG_NOT_JSON, &[("path", &path.display())])))?;
    let field = |name: &str| found.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (field("server_url"), field("token")) {
        (Some(url), Some(token)) => Access::found(url, token, path.display().to_string()).map(Some),
        _ => Ok(None),
    }
}

/// The server on this computer leaves its address and its owner's token in the data folder.
fn local() -> Fallible<Option<Access>> {
    let Some(url) = local_url() else { return Ok(None) };
    let path = owner_token();
    match read_private(&path)?.as_deref().map(str::trim) {
        Some(token) if !token.is_empty() => Access::found(&url, token, path.display().to_string()).map(Some),
        _ => Ok(None),
    }
}

fn owner_token() -> PathBuf {
    data_folder().join("owner.token")
}

/// Of the server on this computer, as far as one said so here. It may have gone since.
pub fn local_url() -> Option<String> {
    let place = data_folder().join("server.json");
    // A link on a full disk, whose target is the text itself.
    let text = if place.is_symlink() {
        fs::read_link(&place).ok()?.into_os_string().into_encoded_bytes()
    } else {
        let mut text = Vec::new();
        File::open(&place).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
        text
    };
    let found: Map<String, Value> = serde_json::from_slice(&text).ok()?; // half written: then there is none
    check_url(found.get("url")?.as_str()?).ok()
}

fn local_or(otherwise: &str) -> Fallible<String> {
    local_url().ok_or_else(|| bad(otherwise))
}

/// None where there is none, or where it is another user's. A secret that others can read, or a thing that is no file, is an error.
fn read_private(path: &Path) -> Fallible<Option<String>> {
    let unreadable = |error: io::Error| bad(say(sentences::CONFIG_UNREADABLE, &[("path", &path.display()), ("why", &reason_of(&error))]));
    let file = match open_at_once(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let status = file.metadata().map_err(unreadable)?;
    let refused = |sentence| Err(bad(say(sentence, &[("path", &path.display())])));
    if !status.is_file() {
        return refused(sentences::CONFIG_NOT_FILE);
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&status) & 0o077 != 0 {
        return refused(sentences::CONFIG_PUBLIC);
    }
    if status.len() > FILE_BYTES_MAX {
        return refused(sentences::CONFIG_TOO_LONG);
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// A pipe that nobody writes to must not be waited for.
fn open_at_once(path: &Path) -> io::Result<File> {
    let is_pipe = fs::metadata(path).is_ok_and(|status| !status.is_file() && !status.is_dir());
    if is_pipe { File::open("/") } else { File::open(path) }
}

// --- what may stand there --------------------------------------------------------------------------------------------------------------

/// Without a slash at its end; `InvalidInput` that says what it should look like.
pub fn check_url(text: &str) -> Fallible<String> {
    parsed_url(text.trim()).ok_or_else(|| invalid(say(sentences::BAD_ADDRESS, &[("text", &quoted(text))])))
}

fn parsed_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(end);
    let (host, port) = match place.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.is_empty() || is_port_number(port));
    // What the library that asks takes for one: a host that ends like a number is an address of four bytes, or nothing.
    let is_host = !host.is_empty() && !place.contains(['@', '\\', '%']) && reqwest::Url::parse(&format!("{scheme}://{place}/")).is_ok();
    let is_plain = !text.contains(['?', '#']) && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    (matches!(scheme.as_str(), "http" | "https") && is_port && is_host && is_plain)
        .then(|| format!("{scheme}://{place}{}", path.trim_end_matches('/')))
}

fn is_port_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// A token as one may be written in a header.
pub fn check_token(text: &str) -> Fallible<String> {
    if text.is_empty() || text.len() > TOKEN_CHARACTERS_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid(sentences::BAD_TOKEN));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_without_the_slash_at_their_end() {
        for (given, made) in [
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
            (" HTTPS://Example.org/a/b// ", "https://Example.org/a/b"),
            ("http://[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(check_url(given).unwrap(), made);
        }
    }

    #[test]
    fn what_is_no_address_is_shown_as_it_was_given() {
        for bad in
            ["", "127.0.0.1:8000", "ftp://x", "http://", "http://x?y=1", "http://x#y", "http://me@x", "http://x:port", "http://x:99999", "http://a b"]
        {
            let error = check_url(bad).unwrap_err();
            assert_eq!(error.kind, Kind::InvalidInput);
            assert!(error.message.starts_with(&format!("'{bad}' is not the address of a server")), "{error}");
        }
    }

    #[test]
    fn what_the_library_that_asks_would_refuse_is_refused_before() {
        for host in ["x/?", "x#", "127.0.0.1%00:1", "a%41", "1.2.3.4.5", "256.1.1.1", "a^b", "a\tb", "a/x y", "[zz]", "[::1"] {
            assert_eq!(check_url(&format!("http://{host}")).unwrap_err().kind, Kind::InvalidInput, "{host}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let access = Access::new("http://x", "id.secret").unwrap();
        assert!(!format!("{access:?}").contains("secret"));
        for bad in ["", "a b", "a\n", "é.x", &"a".repeat(1025)] {
            assert_eq!(check_token(bad).unwrap_err().message, sentences::BAD_TOKEN);
        }
    }
}
