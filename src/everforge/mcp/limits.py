"""What each thing may have at most. A model, its client and the code in a machine are all outside: none of them decides how much is held here."""

from __future__ import annotations

MESSAGE_BYTES_MAX = 8 * 1024 * 1024  # of one message of the protocol: a file of 4 MB in base64 fits
CODE_CHARACTERS_MAX = 1_000_000
PATH_CHARACTERS_MAX = 4096
NAME_CHARACTERS_MAX = 63  # of machines, as the server has it
WRITE_CHARACTERS_MAX = 6_000_000  # of a file's content in one call
READ_BYTES_MAX = 1_000_000  # of a file in one call, or as a resource
READ_BYTES = 50_000  # unless more is asked for: what a model reads, it pays for
OUTPUT_CHARACTERS = 20_000  # of stdout and stderr together, in a result
VALUE_CHARACTERS = 10_000  # of a value or a traceback
LISTED_MAX = 500  # machines, files, snapshots, attempts in one answer
PACKAGES_MAX = 50
PACKAGE_CHARACTERS_MAX = 300

PICTURES_MAX = 8  # in one result
PICTURE_CHARACTERS_MAX = 1_400_000  # of one, in base64: 1 MB
PICTURES_CHARACTERS_MAX = 4_000_000  # of all

TIMEOUT_SECONDS = 50.0  # of code, unless more is asked for: many clients give up after 60
TIMEOUT_SECONDS_MAX = 3600.0
INSTALL_SECONDS = 600.0
INTERRUPT_SECONDS = 5.0  # to interrupt code whose call was cancelled
RETRY_SECONDS = 3.0  # a model is told soon that no server answers
LOST_SECONDS = 15.0  # and so it is of one that goes away while code runs: a restart takes less
ASK_SECONDS = 1.0  # between two questions whether it is back

PROGRESS_SECONDS = 0.2  # between two notifications, at least
HEARTBEAT_SECONDS = 5.0  # and at most, so that no client takes a long computation for a dead one
PROGRESS_CHARACTERS = 200  # of the last line

CALLS_MAX = 64  # of one account at once
CLIENTS_MAX = 256  # accounts whose connections are kept
CONVERSATIONS_MAX = 10_000  # remembered here; what is forgotten is found again by its tag
SESSIONS_MAX = 1000
SESSIONS_OF_TOKEN_MAX = 100
SESSION_IDLE_SECONDS = 1800.0
HEAD_BYTES_MAX = 64 * 1024  # of what comes before a request over HTTP
REQUEST_SECONDS = 60.0  # for all of a request to come: 8 MB take half of that over 2 Mbit/s
TOKEN_SECONDS = 30.0  # for which a token that was good is taken to be good; a machine asks the server each time
TOKENS_MAX = 1000
TAPE_ENTRIES = 200  # of a tape, as a resource
TAPE_CHARACTERS_MAX = 1_000_000
RESOURCES_MAX = 100  # listed
COMPLETIONS_MAX = 100  # the protocol's own
