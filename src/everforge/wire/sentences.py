"""What a client says when something goes wrong around a request: one sentence for each case, the same in three languages. No I/O.

`{name}` is filled in by whoever says it. The other languages have these from here, by tools/make_contract.py.
"""

from __future__ import annotations

from .errors import InvalidInput

# Why nobody could be reached, whatever the library below calls it.
CAUSES = {
    "refused": "the connection was refused",
    "unknown": "there is no computer of that name",
    "slow": "it does not answer in time",
    "untrusted": "its certificate is not trusted here",
    "proxy": "the proxy on the way does not let it through",
    "failed": "the connection failed",
}

SENTENCES = {
    # --- nobody is there, or somebody else
    "unreachable": "no server answers at {url} ({cause}): start one with `everforge serve`, or check the address",
    "cut": "the connection to {url} was cut",
    "cut_unsure": "the connection to {url} was cut: whether the request was carried out is not known",
    "silent": "the server at {url} has not answered for {seconds} seconds: whether {what} was carried out is not known",
    "gateway_away": "{url} answered with {status}: the server behind it is not there at the moment",
    "gateway_cut": "{url} answered with {status}: the server behind it went away, and whether the request was carried out is not known",
    "foreign": "what answers at {url} is not an Everforge server: check the address",
    "foreign_status": "what answers at {url} is not an Everforge server (HTTP {status}): check the address",
    "other_version": "the server at {url} ({server}) does not know this request of client {client}: update whichever of client and server is older",
    "answer_lacks": "the server's answer lacks {names}: it may be of another version",
    "answer_not_json": "the server's answer is not JSON",
    "answer_not_object": "the server's answer is not a JSON object",
    "answer_too_long": "the server's answer is longer than {bytes} bytes",
    "entry_bad": "an entry of the tape is not as it should be: {entry}",
    # --- who asks
    "token_unknown": "the server at {url} does not know this token: run `everforge login`, or give the right one",
    "token_unknown_login": (
        "the server at {url} does not know this token: copy it as it was shown when it was made, "
        "or have a new one made with `everforge token new` where you are logged in"
    ),
    "token_revoked": "the token was revoked by the server at {url}: run `everforge login`, or give another one",
    "no_server": (
        "no server is known here: start one with `everforge serve` on this computer, "
        "or set EVERFORGE_URL and EVERFORGE_TOKEN, or run `everforge login`"
    ),
    "no_server_given": "which server? Give its address with --api-base-url",
    "no_token": "there is no token for {url}: give one, set EVERFORGE_TOKEN and EVERFORGE_URL, or run `everforge login`",
    "no_address": "a token was given without an address: give the server's address, too",
    "environment_no_address": "EVERFORGE_TOKEN is set, but EVERFORGE_URL is not: set it to the server's address",
    "environment_no_token": "EVERFORGE_URL is {url}, but no token for it is known: set EVERFORGE_TOKEN, too, or run `everforge login`",
    "config_not_json": "{path} is not JSON: delete it and run `everforge login` again",
    "config_not_file": "{path} is not a file: remove it, then run `everforge login`",
    "config_public": "{path} holds a token, and others can read it: chmod 600 {path}",
    "config_too_long": "{path} is far too long for what it should be: remove it, then run `everforge login`",
    # --- machines and instructions
    "machine_deleted": "the machine was deleted",
    "deleted_before_end": "{machine} was deleted before instruction {number} ended",
    "not_ended": "instruction {number} of {machine} has not ended yet: it goes on; ask for its result again",
    "nothing_came": "nothing more came within the time given; ask again",
    "no_answer_in_time": "there was no answer within the time given; ask again",
    "no_connection_in_time": "there was no connection within the time given; ask again",
    "ended_badly": "instruction {number} ended {end}: {why}",
    "waits_for_answer": (
        "instruction {number} of {machine} waits for the answer of this function, and nothing else of {machine} can end before: "
        "use exec, and wait for its result elsewhere, or use another machine"
    ),
    "closed": "this client is closed: make a new one, or do it before it is closed",
    # --- what was given
    "bad_address": "{text} is not the address of a server: it looks like http://127.0.0.1:8000 or https://machines.example.org",
    "bad_token": "that is not a token: a token looks like id.secret, without spaces, as it was shown when it was made",
    "bad_link": "that is not a log-in link: it looks like http://127.0.0.1:8787/login/... as `everforge token link` prints it",
    "bad_machine_name": "{text} is not a machine name: use 1 to 63 of a-z, 0-9 and '-', not at the ends, and not list or new",
    "bad_file_path": "{text} is not the path of a file: give a string as 'data/numbers.csv'",
    "dots_not_deleted": "{text} is not deleted: it has . or .. in it; give the path without them",
    "bad_name": "{text} cannot be the name of anything here",
    "bad_secret_name": ("{text} is not a secret's name, which is that of an environment variable: letters, digits and _, 64 at most, no digit first"),
    "bad_function_name": "{text} cannot be the name of a function: use one that Python takes, as 'ask'",
    "bad_timeout": "timeout_seconds is {text}: give a number of seconds above 0, or leave it out",
    "bad_wait": "{name} is {text}: give a number of seconds, 0 or more, or leave it out",
    "bad_number": "{text} is not the number of an instruction: give the `number` of one, from 0 on",
    "answer_not_sendable": "{function} returned what cannot be sent: {why}",
    "answer_too_large": "an answer may have {most} bytes as JSON, not {bytes}: write long data to a file of the machine",
    # --- what was given, further
    "bad_code": "code is {text}: give Python code as a string",
    "bad_env": "env is {text}: give names and values that are strings, as NAME and 'value'",
    "bad_functions": "{text} cannot be called: give a function",
    "bad_content": "{text} is not the content of a file: give a string, bytes, or a file that is open for reading",
    "half_a_pair": "{what} has half of a surrogate pair at character {at}, which UTF-8 does not know: take it out, or give bytes",
    "not_json": "that cannot be written as JSON: {why}",
    "not_a_number": "{name} must be a number that can be written out, not {text}",
    "dots_in_address": "{text} has . or .. in it, which a browser takes out of addresses: give the path without them",
    "browser_access": "in a browser a client needs both: give token and base_url",
    "page_refused": "the server at {url} does not talk to pages of {origin}: its owner can add them to its setting `cors_origins`",
    "no_files_here": "there are no files of a computer in a browser: give a Blob, or take `read` and `write`",
    # --- what a server says
    "answered": "the server answered {code}",
    "entry_too_long": "an entry of the tape is longer than {bytes} bytes",
    "connection_ended": "the server at {url} ended the connection: {why}",
    "answer_bad": "the server's answer is not as it should be: {why}",
    "cannot_ask": "that cannot be asked: {why}",
    "config_unreadable": "{path} cannot be read: {why}",
    "not_text": "{path} is not text: read its bytes instead",
    "answer_no_list": "the server's answer has something else where a list should be",
    "whole_log": (
        "only the owner of the server sees the whole audit log, and can check it; "
        "check your own entries with `everforge audit verify --part`, or with verify_part() of the SDK"
    ),
    # --- archives
    "not_a_folder": "{path} is not a folder",
    "archive_unreadable": "the archive cannot be read: {why}",
    "archive_outside": "{name} in the archive would land or lead outside of {folder}: it is not unpacked here",
    "archive_dots": "{name} in the archive is a link to {to}: with .. behind a name it might lead outside of {folder}",
    "archive_kind": "{name} is neither a file nor a folder nor a link: it is not unpacked here",
}


def say(what: str, /, **words: object) -> str:
    return SENTENCES[what].format(**words)


QUOTED_MAX = 80  # characters


def show(value: object) -> str:
    """Of whatever came from outside, for a sentence: short, and whatever it is, with nothing in it that a terminal would obey."""
    try:
        text = repr(value)
    except Exception:  # a number too long to write out, an object that does not want to be shown
        return f"a {type(value).__name__}"
    return text if len(text) <= QUOTED_MAX else text[: QUOTED_MAX - 3] + "..."


def quoted(text: object) -> str:
    """The same where text is wanted, and nothing else has a name here. Every language shows it so."""
    if not isinstance(text, str):
        raise InvalidInput(f"a {type(text).__name__} was given where text should be")
    return show(text)
