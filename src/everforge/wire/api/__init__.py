"""Bodies of requests and answers over HTTP: the one description of them. The server reads and documents them from here, the SDK takes its answers
apart with them. Plain dataclasses, a module for each kind of thing; no I/O. Whoever uses them says `api.NewMachine`, wherever it stands.

Of a request, what is not given is None and means the server's default. An unknown field is refused by name.
"""

from __future__ import annotations

from .audit import *
from .base import *
from .egress import *
from .files import *
from .identity import *
from .instructions import *
from .machines import *
from .secrets import *
from .server import *
from .snapshots import *
from .tape import *
from .webhooks import *
