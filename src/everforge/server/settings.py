"""Every number and choice of the HTTP server, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from everforge.wire.errors import InvalidInput

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = "127.0.0.1"
    port: int = 8787
    public_url: str = ""  # where clients reach it, if not at host and port; for links and mails

    hosts: tuple[str, ...] = ()  # names that it answers to, beside those of this computer, while it listens on this computer alone: a proxy's

    cors_origins: tuple[str, ...] = ()  # whose pages may use it from a browser, as https://app.example.org; "*": everybody's, with a token of theirs

    # --- limits of what comes in
    header_bytes_max: int = 65_536  # request line and headers together
    header_seconds: float = 20.0  # for all of them to arrive: a client that drips is shown the door
    keep_alive_seconds: float = 75.0  # between two requests of one connection
    body_seconds: float = 30.0  # for a JSON body or a WebSocket message to arrive
    upload_idle_seconds: float = 60.0  # between two pieces of a file that is being uploaded
    body_bytes_max: int = 8 * MB  # a JSON body or a WebSocket message; code of 1 MB can be six times that once it is escaped
    stranger_body_bytes_max: int = 16_384  # a body of somebody without a token: a sign-up is no longer
    arriving_bytes_max: int = 256 * MB  # all bodies and messages under way together, beyond the first 64 KB of each
    upload_bytes_max: int = 10 * 1024 * MB  # one file or archive; a machine's disk is its real limit
    connections_max: int = 5_000  # HTTP and WebSocket together
    connections_per_address_max: int = 2_500  # so that one client leaves room to others; behind a proxy all come from one address
    streams_per_account_max: int = 2_000  # WebSockets and followed tapes

    # --- what goes out, and patience with it
    departing_bytes_max: int = 256 * MB  # all answers and frames above 64 KB that are on their way together
    quiet_seconds: float = 10.0  # of silence on a long answer, then a space: some clients give up on a connection that says nothing
    early_seconds: float = 1.0  # a result that takes longer gets its headers first
    write_seconds: float = 120.0  # for a client to take a frame; one that does not is cut off, and may come back to where it was
    stop_seconds: float = 5.0  # for answers under way when the server stops
    warden_linger_seconds: float = 30.0  # a warden with nothing to hold waits so long for a server that is being restarted

    # --- pages
    list_machines_max: int = 1000
    list_max: int = 500
    tape_entries_max: int = 1000
    tape_bytes_max: int = 1 * MB  # of one JSON answer, but for its last entry


def check(settings: ServerSettings) -> None:
    """Raises InvalidInput."""
    s = settings
    for holds, rule in (
        (bool(s.host), "host is an address or a name"),
        (0 <= s.port <= 65_535, "port is from 0 to 65535"),
        (
            min(s.header_seconds, s.body_seconds, s.upload_idle_seconds, s.keep_alive_seconds, s.quiet_seconds, s.write_seconds) > 0,
            "patience is above 0",
        ),
        (
            min(s.header_bytes_max, s.body_bytes_max, s.stranger_body_bytes_max, s.upload_bytes_max, s.departing_bytes_max) > 0
            and min(s.connections_max, s.connections_per_address_max) > 0,
            "limits are above 0",
        ),
        (s.arriving_bytes_max >= s.body_bytes_max, "arriving_bytes_max is at least body_bytes_max"),
        (not s.public_url or s.public_url.startswith(("http://", "https://")), "public_url begins with http:// or https://"),
        (all(_is_origin(origin) for origin in s.cors_origins), "cors_origins are like https://app.example.org, or *"),
    ):
        if not holds:
            raise InvalidInput(f"the settings of the server do not fit together: {rule}")


def _is_origin(text: str) -> bool:
    parts = urlsplit(text.rstrip("/"))
    return text == "*" or (parts.scheme in ("http", "https") and bool(parts.netloc) and not (parts.path or parts.query or parts.fragment))
