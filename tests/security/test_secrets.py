"""A machine uses secrets and never has them: not in its memory, not on its disk, not among its processes."""

from __future__ import annotations

import ast
import secrets as random
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from everforge import Everforge, Machine
from everforge.egress.authority import Authority
from everforge.egress.outside import HOST_NAME
from kit.commandserver import CommandServer, command_server
from kit.privateindex import USER, PrivateIndex, private_index

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

EVERYTHING_OF_PROCESSES = """
import glob
found = b""
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        found += open(path, "rb").read()
    except OSError:
        pass
open("/tmp/seen", "wb").write(found)
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateIndex]:
    with private_index(tmp_path_factory.mktemp("index"), "pass-" + random.token_hex(12)) as index:
        yield index


class Host:
    """A server of the test's own, TLS and plain HTTP at one port. It keeps every request as it came, and says it again: in the answer's body, below
    /headers in its head, and below /to/ it sends whoever asks to the address that follows."""

    def __init__(self, name: str, listener: socket.socket, context: ssl.SSLContext) -> None:
        self.place = f"{name}:{listener.getsockname()[1]}"
        self.heard: list[bytes] = []
        self._listener = listener
        self._context = context

    def serve(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                threading.Thread(target=self._answer, args=(self._listener.accept()[0],), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(30)
            if connection.recv(1, socket.MSG_PEEK) != b"\x16":  # the first byte of TLS
                self._converse(connection)
                return
            with self._context.wrap_socket(connection, server_side=True) as secured:
                self._converse(secured)

    def _converse(self, connection: socket.socket) -> None:
        heard = b""
        while b"\r\n\r\n" not in heard:
            if not (piece := connection.recv(65536)):
                return
            heard += piece
        head, _, body = heard.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        while len(body) < length and (piece := connection.recv(65536)):
            body += piece
        self.heard.append(head + b"\r\n\r\n" + body)
        first, *headers = head.split(b"\r\n")
        path = first.split()[1]
        if path.startswith(b"/to/"):
            answer, told = [b"HTTP/1.1 302 Found", b"Location: " + path.removeprefix(b"/to/")], b""
        elif path.startswith(b"/headers"):
            answer, told = [b"HTTP/1.1 200 OK", b"X-Path: " + path, *(b"X-Heard-" + header for header in headers)], b""
        else:
            answer, told = [b"HTTP/1.1 200 OK"], self.heard[-1]
        connection.sendall(b"\r\n".join([*answer, b"Content-Length: %d" % len(told), b"Connection: close", b"", told]))


@contextmanager
def host(name: str, certificate: str, index: PrivateIndex) -> Iterator[Host]:
    """One that the server's computer believes: its certificate is from the same authority as the index's."""
    context = Authority.in_folder(index.certificates.parent).context(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Host(name, listener, context)
        threading.Thread(target=made.serve, daemon=True).start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def api(index: PrivateIndex) -> Iterator[Host]:
    """What secrets are for."""
    with host(HOST_NAME, "127.0.0.1", index) as made:
        yield made


@pytest.fixture(scope="module")
def other(index: PrivateIndex) -> Iterator[Host]:
    """What they are not for, though machines may reach it as well."""
    with host("localhost", "localhost", index) as made:
        yield made


@pytest.fixture(scope="module")
def served(index: PrivateIndex, api: Host, other: Host) -> Iterator[CommandServer]:
    """A server on a computer whose pip is configured for the index, and knows its password."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERFORGE_ALLOW_HOSTS", f"{api.place},{other.place}".replace(HOST_NAME, "127.0.0.1"))
        patch.setenv("PIP_INDEX_URL", index.url)
        patch.setenv("PIP_CERT", str(index.certificates))
        with command_server("minimal") as served:
            yield served


@pytest.fixture(scope="module")
def server(served: CommandServer) -> Iterator[Everforge]:
    with Everforge(served.token, served.url) as server:
        yield server


def run(machine: Machine, code: str) -> str:
    result = machine.run(code, timeout_seconds=120)
    assert result.end == "value", result.text
    return result.text


def bytes_found_in_snapshots(served: CommandServer, wanted: bytes) -> bool:
    """In everything that the server keeps of machines: memory images and disks alike."""
    return any(path.is_file() and _contains(path, wanted) for path in (served.data / "snapshots").rglob("*"))


def _contains(path: Path, wanted: bytes) -> bool:
    tail = b""
    with path.open("rb") as f:
        while piece := f.read(8 * 1024 * 1024):
            if wanted in tail + piece:
                return True
            tail = piece[-len(wanted) :]
    return False


def test_pip_installs_from_an_index_with_a_password_that_never_enters_the_machine(
    served: CommandServer, server: Everforge, index: PrivateIndex
) -> None:
    machine = server.create("buyer")
    told = run(machine, "!pip install house_rules 2>&1")
    assert "Successfully installed house_rules" in told
    assert USER in index.logins
    assert run(machine, "import house_rules; house_rules.RULES") == "'be kind'"
    settings = run(machine, "print(open('/etc/pip.conf').read())")
    assert "everforge-secret-" in settings
    spellings = [index.password.encode(), b64encode(f"{USER}:{index.password}".encode())]
    run(machine, EVERYTHING_OF_PROCESSES)
    processes = machine.files.read("/tmp/seen")  # looked through here: a machine that is asked for a password knows it
    assert b"interpreter" in processes
    for spelling in spellings:
        assert spelling not in told.encode() + settings.encode() + processes
    machine.egress.set("none")
    machine.hibernate()
    assert bytes_found_in_snapshots(served, b"everforge-secret-")  # what is looked for could be found
    for spelling in spellings:
        assert not bytes_found_in_snapshots(served, spelling)
    assert run(machine, "import importlib, house_rules; importlib.reload(house_rules).RULES") == "'be kind'"
    machine.run(f"import urllib.request\nurllib.request.urlopen('https://{HOST_NAME}:{index.port}/simple/')")
    assert next(iter(machine.egress.log())).verdict == "refused"


def test_without_the_door_the_password_is_asked_for(server: Everforge, index: PrivateIndex) -> None:
    """The index does need one: a placeholder alone opens nothing, be it one that looks like the door's own."""
    machine = server.create("stranger", egress="packages")
    code = f"""
import base64, urllib.request, urllib.error
def status(**headers):
    try:
        return urllib.request.urlopen(urllib.request.Request("https://{HOST_NAME}:{index.port}/simple/", headers=headers)).status
    except urllib.error.HTTPError as e:
        return e.code
made_up = base64.b64encode(b"{USER}:everforge-secret-" + b"0" * 32).decode()
"""
    run(machine, code)
    logins, refused = len(index.logins), index.refused
    assert run(machine, "status()") == "401"
    assert run(machine, "status(Authorization='Basic ' + made_up)") == "403"
    assert (len(index.logins), index.refused) == (logins, refused + 1)  # the one that came with a password


def test_a_secret_of_an_account_is_used_by_its_machines_and_is_nowhere_in_them(served: CommandServer, server: Everforge, index: PrivateIndex) -> None:
    """The same index, asked as a program asks an API: with a header of its own making, from a placeholder in its environment."""
    value = index.password
    server.secrets.set("INDEX_PASSWORD", value, hosts=[f"{HOST_NAME}:{index.port}"])
    machine = server.create("caller", egress="packages")
    code = f"""
import base64, os, urllib.request
login = base64.b64encode(("{USER}:" + os.environ["INDEX_PASSWORD"]).encode()).decode()
request = urllib.request.Request("https://{HOST_NAME}:{index.port}/simple/", headers={{"Authorization": "Basic " + login}})
print(urllib.request.urlopen(request).status)
"""
    assert run(machine, code) == "200"
    fork = machine.fork("caller-fork")
    assert run(fork, "print(urllib.request.urlopen(request).status)") == "200"
    machine.hibernate()
    fork.hibernate()
    assert not bytes_found_in_snapshots(served, value.encode())
    used = [a for a in machine.egress.log() if "INDEX_PASSWORD" in a.secrets]
    assert used
    assert all(value not in str(a) for a in machine.egress.log())
    server.secrets.delete("INDEX_PASSWORD")


def test_a_secret_that_is_set_while_a_machine_is_awake_is_there_for_the_next_instruction(server: Everforge) -> None:
    machine = server.create("waiting")
    assert run(machine, "import os; os.environ.get('LATE')") == ""
    made = server.secrets.set("LATE", "a value that came late", hosts=["api.example.com"])
    assert run(machine, "os.environ.get('LATE')") == repr(made.placeholder)
    server.secrets.delete("LATE")


# --- where a value goes, and where not -----------------------------------------------------------------------------------------------------------

TOOLS = """
import os, urllib.request
for name in ("no_proxy", "NO_PROXY"):
    os.environ.pop(name, None)  # the test's other host is called localhost: it, too, is asked through the door
def ask(url, body=None, headers={}):
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
        return answer.status, [*answer.headers.items()], answer.read()
key = os.environ.get("KEY", "")
"""


class Caller:
    """A machine of the account that has the secret KEY, and what it does with it."""

    def __init__(self, server: Everforge, machine: Machine, api: Host) -> None:
        self.server = server
        self.machine = machine
        self.api = api
        self.value = "value-" + random.token_hex(12)

    def give(self, **more: Any) -> str:
        """The secret, set anew for this test; its placeholder."""
        placeholder = self.server.secrets.set("KEY", self.value, hosts=[self.api.place], **more).placeholder
        run(self.machine, TOOLS)
        return placeholder

    def ask(self, call: str) -> tuple[int, list[tuple[str, str]], bytes]:
        result = self.machine.run(call, timeout_seconds=60)
        assert result.end == "value", result.text
        assert result.value is not None
        assert self.value not in result.value  # whatever is asked, and whoever answers
        return ast.literal_eval(result.value)


@pytest.fixture(scope="module")
def calling(server: Everforge, api: Host, other: Host) -> Caller:
    return Caller(server, server.create("calling", egress="list", egress_allow=[api.place, other.place]), api)


@pytest.fixture
def caller(calling: Caller, other: Host) -> Iterator[Caller]:
    calling.api.heard.clear()
    other.heard.clear()
    yield calling
    calling.server.secrets.delete("KEY")


def test_a_value_is_put_in_over_tls_and_not_into_plain_http(caller: Caller, api: Host) -> None:
    placeholder = caller.give(places=["body", "url"])
    for scheme in ("https", "http"):
        assert caller.ask(f"ask('{scheme}://{api.place}/' + key, key.encode(), {{'X-Key': key}})")[0] == 200
    over_tls, plain = api.heard
    assert over_tls.count(caller.value.encode()) == 3
    assert placeholder.encode() not in over_tls
    assert plain.count(placeholder.encode()) == 3
    assert caller.value.encode() not in plain


def test_body_and_url_get_the_value_only_when_that_was_asked_for(caller: Caller, api: Host) -> None:
    for places, found in (([], (False, False)), (["body"], (False, True)), (["url"], (True, False))):
        placeholder = caller.give(places=places).encode()
        caller.ask(f"ask('https://{api.place}/?' + key, b'form ' + key.encode(), {{'X-Key': key}})")
        head, _, body = api.heard[-1].partition(b"\r\n\r\n")
        line, _, headers = head.partition(b"\r\n")
        value = caller.value.encode()
        assert value in headers
        assert (value in line, value in body) == found
        assert (placeholder in line, placeholder in body) == (not found[0], not found[1])


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_after_a_redirect_to_another_host_it_hears_the_placeholder(caller: Caller, api: Host, other: Host, scheme: str) -> None:
    """urllib sends its headers along to whoever it is sent to. Such a header by itself is put in for no other host either."""
    placeholder = caller.give(header="X-By-Itself: {}", places=["url"])
    status, _, told = caller.ask(f"ask('https://{api.place}/to/{scheme}://{other.place}/?' + key, None, {{'Authorization': 'Bearer ' + key}})")
    assert status == 200
    assert caller.value.encode() in api.heard[0]
    [heard] = other.heard
    assert told == heard  # nobody was between that would have made anything unreadable
    assert b"authorization: bearer " + placeholder.encode() in heard.lower()
    assert caller.value.encode() not in heard
    assert b"by-itself" not in heard.lower()


def test_a_header_is_put_in_by_itself_and_in_place_of_the_machines_own(caller: Caller, api: Host) -> None:
    caller.give(header="Authorization: Bearer {}")
    caller.ask(f"ask('https://{api.place}/')")
    caller.ask(f"ask('https://{api.place}/', None, {{'Authorization': 'Basic bm9ib2R5Om5vYm9keQ=='}})")
    caller.ask(f"ask('http://{api.place}/')")
    wanted = b"authorization: bearer " + caller.value.encode()
    alone, replaced, plain = [[line.lower() for line in heard.split(b"\r\n") if b"uthorization" in line] for heard in api.heard]
    assert (alone, replaced, plain) == ([wanted], [wanted], [])


def test_an_echo_of_the_value_comes_back_unreadable_in_the_body_and_in_headers(caller: Caller, api: Host) -> None:
    """`ask` looks for the value in everything that comes back; here for where it would have stood."""
    caller.give(places=["body", "url"])
    _, _, body = caller.ask(f"ask('https://{api.place}/?' + key, b'x' * 70000 + key.encode(), {{'X-Key': key}})")
    stars = b"*" * len(caller.value)
    assert body == api.heard[0].replace(caller.value.encode(), stars)
    assert body.count(stars) == 3
    _, headers, _ = caller.ask(f"ask('https://{api.place}/headers?' + key, None, {{'X-Key': key, 'Authorization': 'Bearer ' + key}})")
    told = {name.lower(): value for name, value in headers}
    assert (told["x-path"], told["x-heard-x-key"]) == (f"/headers?{stars.decode()}", stars.decode())
    assert told["x-heard-authorization"] == f"Bearer {stars.decode()}"


# Without a secret TLS passes as it is, and the host's certificate is for the name that it has on its own computer.
TRUST_ANYBODY = (
    "import ssl; urllib.request.install_opener(urllib.request.build_opener(urllib.request.HTTPSHandler(context=ssl._create_unverified_context())))"
)


def test_a_placeholder_copied_into_another_accounts_machine_is_only_a_placeholder(
    caller: Caller, server: Everforge, served: CommandServer, api: Host
) -> None:
    placeholder = caller.give(header="X-By-Itself: {}", places=["body", "url"])
    made = server.accounts.create("thief")
    assert made.token is not None
    with Everforge(made.token, served.url) as elsewhere:
        machine = elsewhere.create("copying", egress="list", egress_allow=[api.place])
        try:
            run(machine, TOOLS)
            assert run(machine, "key") == "''"
            run(machine, TRUST_ANYBODY)
            url = f"https://{api.place}/?{placeholder}"
            run(machine, f"ask({url!r}, {placeholder.encode()!r}, {{'Authorization': 'Bearer {placeholder}'}})[0]")
        finally:
            machine.delete()
    [heard] = api.heard
    assert heard.count(placeholder.encode()) == 3
    assert caller.value.encode() not in heard
    assert b"by-itself" not in heard.lower()


def test_a_value_in_use_is_nowhere_in_the_servers_database_or_log(caller: Caller, served: CommandServer, api: Host) -> None:
    """It was in a request's every part, in one to a host that is not there, and in one that was refused: none of it was written down."""
    placeholder = caller.give(places=["body", "url"])
    caller.ask(f"ask('https://{api.place}/' + key, key.encode(), {{'X-Key': key}})")
    assert caller.value.encode() in api.heard[0]
    caller.machine.run(f"ask('https://{api.place}1/' + key, key.encode(), {{'X-Key': key}})")
    caller.machine.run(f"ask('https://{api.place}/' + key, b'', {{'Host': key, 'X-Key': key}})")
    log = [str(attempt) for attempt in caller.machine.egress.log()]
    assert any("KEY" in line for line in log)
    caller.machine.hibernate()
    found = [path.name for path in served.data.rglob("*") if path.is_file() and _contains(path, caller.value.encode())]
    assert found == []
    assert any(path.is_file() and _contains(path, placeholder.encode()) for path in served.data.rglob("*"))  # what is looked for could be found
    told = [*log, served.log.read_text(), str(caller.server.secrets.list())]
    assert not [text for text in told if caller.value in text]
