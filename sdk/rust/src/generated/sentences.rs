// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.
//! What a client says when something goes wrong around a request: the same in three languages.

pub const QUOTED_MAX: usize = 80;

/// Why nobody could be reached.
pub mod causes {
    pub const REFUSED: &str = "the connection was refused";
    pub const UNKNOWN: &str = "there is no computer of that name";
    pub const SLOW: &str = "it does not answer in time";
    pub const UNTRUSTED: &str = "its certificate is not trusted here";
    pub const PROXY: &str = "the proxy on the way does not let it through";
    pub const FAILED: &str = "the connection failed";
}

/// `{name}` is filled in by whoever says it.
pub mod sentences {
    pub const UNREACHABLE: &str = "no server answers at {url} ({cause}): start one with `everforge serve`, or check the address";
    pub const CUT: &str = "the connection to {url} was cut";
    pub const CUT_UNSURE: &str = "the connection to {url} was cut: whether the request was carried out is not known";
    pub const SILENT: &str = "the server at {url} has not answered for {seconds} seconds: whether {what} was carried out is not known";
    pub const GATEWAY_AWAY: &str = "{url} answered with {status}: the server behind it is not there at the moment";
    pub const GATEWAY_CUT: &str = "{url} answered with {status}: the server behind it went away, and whether the request was carried out is not known";
    pub const FOREIGN: &str = "what answers at {url} is not an Everforge server: check the address";
    pub const FOREIGN_STATUS: &str = "what answers at {url} is not an Everforge server (HTTP {status}): check the address";
    pub const OTHER_VERSION: &str = "the server at {url} ({server}) does not know this request of client {client}: update whichever of client and server is older";
    pub const ANSWER_LACKS: &str = "the server's answer lacks {names}: it may be of another version";
    pub const ANSWER_NOT_JSON: &str = "the server's answer is not JSON";
    pub const ANSWER_NOT_OBJECT: &str = "the server's answer is not a JSON object";
    pub const ANSWER_TOO_LONG: &str = "the server's answer is longer than {bytes} bytes";
    pub const ENTRY_BAD: &str = "an entry of the tape is not as it should be: {entry}";
    pub const TOKEN_UNKNOWN: &str = "the server at {url} does not know this token: run `everforge login`, or give the right one";
    pub const TOKEN_UNKNOWN_LOGIN: &str = "the server at {url} does not know this token: copy it as it was shown when it was made, or have a new one made with `everforge token new` where you are logged in";
    pub const TOKEN_REVOKED: &str = "the token was revoked by the server at {url}: run `everforge login`, or give another one";
    pub const NO_SERVER: &str = "no server is known here: start one with `everforge serve` on this computer, or set EVERFORGE_URL and EVERFORGE_TOKEN, or run `everforge login`";
    pub const NO_SERVER_GIVEN: &str = "which server? Give its address with --api-base-url";
    pub const NO_TOKEN: &str = "there is no token for {url}: give one, set EVERFORGE_TOKEN and EVERFORGE_URL, or run `everforge login`";
    pub const NO_ADDRESS: &str = "a token was given without an address: give the server's address, too";
    pub const ENVIRONMENT_NO_ADDRESS: &str = "EVERFORGE_TOKEN is set, but EVERFORGE_URL is not: set it to the server's address";
    pub const ENVIRONMENT_NO_TOKEN: &str = "EVERFORGE_URL is {url}, but no token for it is known: set EVERFORGE_TOKEN, too, or run `everforge login`";
    pub const CONFIG_NOT_JSON: &str = "{path} is not JSON: delete it and run `everforge login` again";
    pub const CONFIG_NOT_FILE: &str = "{path} is not a file: remove it, then run `everforge login`";
    pub const CONFIG_PUBLIC: &str = "{path} holds a token, and others can read it: chmod 600 {path}";
    pub const CONFIG_TOO_LONG: &str = "{path} is far too long for what it should be: remove it, then run `everforge login`";
    pub const MACHINE_DELETED: &str = "the machine was deleted";
    pub const DELETED_BEFORE_END: &str = "{machine} was deleted before instruction {number} ended";
    pub const NOT_ENDED: &str = "instruction {number} of {machine} has not ended yet: it goes on; ask for its result again";
    pub const NOTHING_CAME: &str = "nothing more came within the time given; ask again";
    pub const NO_ANSWER_IN_TIME: &str = "there was no answer within the time given; ask again";
    pub const NO_CONNECTION_IN_TIME: &str = "there was no connection within the time given; ask again";
    pub const ENDED_BADLY: &str = "instruction {number} ended {end}: {why}";
    pub const WAITS_FOR_ANSWER: &str = "instruction {number} of {machine} waits for the answer of this function, and nothing else of {machine} can end before: use exec, and wait for its result elsewhere, or use another machine";
    pub const CLOSED: &str = "this client is closed: make a new one, or do it before it is closed";
    pub const BAD_ADDRESS: &str = "{text} is not the address of a server: it looks like http://127.0.0.1:8000 or https://machines.example.org";
    pub const BAD_TOKEN: &str = "that is not a token: a token looks like id.secret, without spaces, as it was shown when it was made";
    pub const BAD_LINK: &str = "that is not a log-in link: it looks like http://127.0.0.1:8787/login/... as `everforge token link` prints it";
    pub const BAD_MACHINE_NAME: &str = "{text} is not a machine name: use 1 to 63 of a-z, 0-9 and '-', not at the ends, and not list or new";
    pub const BAD_FILE_PATH: &str = "{text} is not the path of a file: give a string as 'data/numbers.csv'";
    pub const DOTS_NOT_DELETED: &str = "{text} is not deleted: it has . or .. in it; give the path without them";
    pub const BAD_NAME: &str = "{text} cannot be the name of anything here";
    pub const BAD_SECRET_NAME: &str = "{text} is not a secret's name, which is that of an environment variable: letters, digits and _, 64 at most, no digit first";
    pub const BAD_FUNCTION_NAME: &str = "{text} cannot be the name of a function: use one that Python takes, as 'ask'";
    pub const BAD_TIMEOUT: &str = "timeout_seconds is {text}: give a number of seconds above 0, or leave it out";
    pub const BAD_WAIT: &str = "{name} is {text}: give a number of seconds, 0 or more, or leave it out";
    pub const BAD_NUMBER: &str = "{text} is not the number of an instruction: give the `number` of one, from 0 on";
    pub const ANSWER_NOT_SENDABLE: &str = "{function} returned what cannot be sent: {why}";
    pub const ANSWER_TOO_LARGE: &str = "an answer may have {most} bytes as JSON, not {bytes}: write long data to a file of the machine";
    pub const BAD_CODE: &str = "code is {text}: give Python code as a string";
    pub const BAD_ENV: &str = "env is {text}: give names and values that are strings, as NAME and 'value'";
    pub const BAD_FUNCTIONS: &str = "{text} cannot be called: give a function";
    pub const BAD_CONTENT: &str = "{text} is not the content of a file: give a string, bytes, or a file that is open for reading";
    pub const HALF_A_PAIR: &str = "{what} has half of a surrogate pair at character {at}, which UTF-8 does not know: take it out, or give bytes";
    pub const NOT_JSON: &str = "that cannot be written as JSON: {why}";
    pub const NOT_A_NUMBER: &str = "{name} must be a number that can be written out, not {text}";
    pub const DOTS_IN_ADDRESS: &str = "{text} has . or .. in it, which a browser takes out of addresses: give the path without them";
    pub const BROWSER_ACCESS: &str = "in a browser a client needs both: give token and base_url";
    pub const PAGE_REFUSED: &str = "the server at {url} does not talk to pages of {origin}: its owner can add them to its setting `cors_origins`";
    pub const NO_FILES_HERE: &str = "there are no files of a computer in a browser: give a Blob, or take `read` and `write`";
    pub const ANSWERED: &str = "the server answered {code}";
    pub const ENTRY_TOO_LONG: &str = "an entry of the tape is longer than {bytes} bytes";
    pub const CONNECTION_ENDED: &str = "the server at {url} ended the connection: {why}";
    pub const ANSWER_BAD: &str = "the server's answer is not as it should be: {why}";
    pub const CANNOT_ASK: &str = "that cannot be asked: {why}";
    pub const CONFIG_UNREADABLE: &str = "{path} cannot be read: {why}";
    pub const NOT_TEXT: &str = "{path} is not text: read its bytes instead";
    pub const ANSWER_NO_LIST: &str = "the server's answer has something else where a list should be";
    pub const WHOLE_LOG: &str = "only the owner of the server sees the whole audit log, and can check it; check your own entries with `everforge audit verify --part`, or with verify_part() of the SDK";
    pub const NOT_A_FOLDER: &str = "{path} is not a folder";
    pub const ARCHIVE_UNREADABLE: &str = "the archive cannot be read: {why}";
    pub const ARCHIVE_OUTSIDE: &str = "{name} in the archive would land or lead outside of {folder}: it is not unpacked here";
    pub const ARCHIVE_DOTS: &str = "{name} in the archive is a link to {to}: with .. behind a name it might lead outside of {folder}";
    pub const ARCHIVE_KIND: &str = "{name} is neither a file nor a folder nor a link: it is not unpacked here";
}
