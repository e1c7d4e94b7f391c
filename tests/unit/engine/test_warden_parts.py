from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from everforge.engine.warden import bundle, folders, processes
from everforge.engine.warden.channel import PACKET_BYTES_MAX, Channel
from everforge.engine.warden.children import Children
from everforge.engine.warden.commands import Runsc, is_disk_full
from everforge.engine.warden.held import how_it_ended, new_stdio
from everforge.wire.errors import EngineUnfit, ProtocolError
from everforge.wire.ids import new_sandbox_id


def channels() -> tuple[Channel, Channel]:
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(one), Channel(two)


class TestChannel:
    async def test_descriptors_travel_with_a_message_and_are_not_inherited(self) -> None:
        one, two = channels()
        read, write = os.pipe()
        await one.send({"hello": 1}, [write])
        packet = await two.receive()
        assert packet is not None
        message, (received,) = packet
        assert message == {"hello": 1}
        assert not os.get_inheritable(received)
        os.write(received, b"x")
        assert os.read(read, 1) == b"x"
        for number in (read, write, received):
            os.close(number)
        one.close()
        assert await two.receive() is None
        two.close()

    @pytest.mark.parametrize("data", [b"[]", b"nonsense", b"\xff", b"[" * 50_000])
    async def test_anything_but_a_json_object_is_a_protocol_error(self, data: bytes) -> None:
        one, two = channels()
        one.socket.send(data)
        with pytest.raises(ProtocolError):
            await two.receive()
        one.close()
        two.close()

    async def test_a_message_over_the_limit_is_refused_on_both_sides(self) -> None:
        one, two = channels()
        with pytest.raises(ProtocolError):
            await one.send({"x": "a" * PACKET_BYTES_MAX})
        one.socket.send(b"{" + b" " * (PACKET_BYTES_MAX + 10) + b"}")
        with pytest.raises(ProtocolError):
            await two.receive()
        one.close()
        two.close()

    async def test_a_slow_reader_makes_the_writer_wait(self) -> None:
        one, two = channels()
        sending = asyncio.gather(*(one.send({"n": n, "x": "a" * 30_000}) for n in range(50)))
        await asyncio.sleep(0.01)
        assert not sending.done()
        for n in range(50):
            packet = await two.receive()
            assert packet is not None
            assert packet[0]["n"] == n
        await sending
        one.close()
        two.close()


class TestFolders:
    def test_a_short_data_folder_has_its_run_folder_inside(self) -> None:
        assert folders.find(Path("/var/lib/everforge")).run == Path("/var/lib/everforge/run")

    def test_a_long_one_has_it_where_socket_names_fit(self) -> None:
        found = folders.find(Path("/var/lib") / ("x" * 120))
        assert found.run.parent == Path(f"/tmp/everforge-{os.geteuid()}")
        assert len(str(found.state / f"runsc-{new_sandbox_id()}.sock")) <= folders.SOCKET_PATH_BYTES_MAX

    def test_a_run_folder_that_is_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(EngineUnfit):
            folders.make(folders.Folders(tmp_path, tmp_path / "run"))

    @pytest.mark.parametrize("name", ["run", "engine", "disks", "run/state"])
    def test_a_file_where_a_folder_should_be_is_named_with_what_to_do(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        with pytest.raises(EngineUnfit, match=f"{tmp_path / name} is not a folder.*move it away"):
            folders.make(folders.Folders(tmp_path, tmp_path / "run"))

    def test_a_run_folder_is_closed_to_others(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir(mode=0o755)
        folders.make(folders.Folders(tmp_path, tmp_path / "run"))
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


class TestProcesses:
    def test_sentry_and_gofer_are_told_from_strangers(self) -> None:
        state, id = Path("/data/run/state"), new_sandbox_id()
        assert processes.sandbox_of(["runsc-sandbox", f"--root={state}", "boot", id], state) == id
        assert processes.sandbox_of(["runsc-gofer", f"--root={state}", "gofer", "--bundle", f"/data/run/bundles/{id}"], state) == id
        assert processes.sandbox_of(["runsc-sandbox", f"--root={state}", "boot", f"--bundle=/b/{id}", "x"], state) == id
        assert processes.sandbox_of(["runsc-sandbox", "--root=/other", "boot", id], state) is None
        assert processes.sandbox_of(["vim", id], state) is None
        assert processes.sandbox_of([], state) is None

    def test_a_scan_finds_every_process_of_every_sandbox(self, tmp_path: Path) -> None:
        state, one, two = Path("/s"), new_sandbox_id(), new_sandbox_id()
        for pid, arguments in ((10, ["runsc", "--root=/s", one]), (11, ["runsc", "--root=/s", one]), (12, ["runsc", "--root=/s", two]), (13, ["sh"])):
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "cmdline").write_bytes(b"".join(a.encode() + b"\0" for a in arguments))
        (tmp_path / "uptime").touch()
        found = processes.scan(state, tmp_path)
        assert {id: sorted(pids) for id, pids in found.items()} == {one: [10, 11], two: [12]}

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"sandbox": {"pid": "x"}, "goferPid": 1}', "null"])
    def test_a_state_file_that_makes_no_sense_is_no_state_file(self, tmp_path: Path, text: str) -> None:
        id = new_sandbox_id()
        (tmp_path / f"{id}_sandbox:{id}.state").write_text(text)
        assert processes.recorded(id, tmp_path) is None

    def test_a_process_of_something_else_is_not_opened(self) -> None:
        assert processes.Process.open(os.getpid(), new_sandbox_id(), Path("/s")) is None


class TestChildren:
    async def test_commands_give_their_exit_code_signal_or_deadline(self) -> None:
        children = Children()
        children.begin()
        null = os.open("/dev/null", os.O_RDWR)
        stdio = (null, null, null)
        codes = await asyncio.gather(
            children.run(["/bin/sh", "-c", "exit 3"], stdio, 10),
            children.run(["/bin/sh", "-c", "kill -9 $$"], stdio, 10),
            children.run(["/bin/sleep", "60"], stdio, 0.05),
        )
        assert codes == [3, -9, None]
        os.close(null)
        asyncio.get_running_loop().remove_signal_handler(17)


class TestCommands:
    def test_the_last_error_of_a_log_is_told_in_one_line(self, tmp_path: Path) -> None:
        found = folders.Folders(tmp_path, tmp_path / "run")
        folders.make(found)
        runsc = Runsc(Path("/runsc"), found, "s1")
        assert runsc.complaint(0) == "it said nothing"
        runsc.log.write_text("I1 old.go:1] FATAL ERROR: of another time\n")
        since = runsc.log_size()
        with open(runsc.log, "a") as file:
            file.write("W1115 util.go:64] FATAL ERROR: writing pages: no space left on device\nW1115 x.go:1] bye\n")
        assert runsc.complaint(since) == "writing pages: no space left on device"
        assert is_disk_full(runsc.complaint(since), Path("/"))

    def test_of_a_message_with_a_trace_behind_it_the_message_is_told(self, tmp_path: Path) -> None:
        """As runsc wrote it when a sandbox could not be saved, with fewer kinds of lines in the trace."""
        found = folders.Folders(tmp_path, tmp_path / "run")
        folders.make(found)
        runsc = Runsc(Path("/runsc"), found, "s1")
        sentence = 'checkpoint failed: checkpointing container "s1": encoding error: /dev/net/tun does not support save/restore when a device is associated with it'
        frame = "gvisor.dev/gvisor/pkg/state.safely.func1()\n\tgvisor.dev/gvisor@v0.0.0-20260905035102-160fafc42237/pkg/state/state.go:309 +0x19e\n"
        message = (
            f"{sentence}.:\ngoroutine 26 [running]:\n{frame * 100}created by gvisor.dev/gvisor/pkg/urpc.(*Server).StartHandling in goroutine 33\n"
        )
        line = json.dumps({"msg": message, "level": "error", "time": "2026-11-18T05:39:12.248936884Z"})
        assert len(line) > 11_000
        runsc.log.write_text(line)
        assert runsc.complaint(0) == sentence
        runsc.log.write_text(line[:-20])  # cut off in the middle
        assert runsc.complaint(0).endswith("associated with it")

    def test_a_save_always_leaves_the_sandbox_running(self, tmp_path: Path) -> None:
        runsc = Runsc(Path("/runsc"), folders.Folders(tmp_path, tmp_path / "run"), "s1")
        for direct in (True, False):
            assert "--leave-running" in runsc.save(Path("/x"), direct=direct)

    def test_no_flag_loosens_the_sandbox(self, tmp_path: Path) -> None:
        runsc = Runsc(Path("/runsc"), folders.Folders(tmp_path, tmp_path / "run"), "s1", disk_mb=10)
        argv = " ".join([*runsc.start(), *runsc.create(), *runsc.restore(Path("/x"))])
        for word in ("TESTONLY", "host-uds", "host-fifo", "net-raw", "rootless", "ignore-cgroups", "debug", "strace", "allow-"):
            assert word not in argv
        assert "size=10m" in argv


class TestBundle:
    def test_the_agent_has_three_capabilities_and_every_tmpfs_a_size(self) -> None:
        spec = bundle.specification("/images/x/root", bundle.resources(100, 1.0, 10), "/everforge-mark-s1")
        process = spec["process"]
        assert process["noNewPrivileges"]
        assert all(sorted(c) == ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"] for c in process["capabilities"].values())
        assert all(any(o.startswith("size=") for o in m["options"]) for m in spec["mounts"] if m["type"] == "tmpfs")
        assert not [m for m in spec["mounts"] if m["type"] == "bind"]
        assert spec["linux"]["resources"]["pids"]["limit"] == bundle.tasks(10)

    def test_two_sandboxes_differ_in_nothing_but_host_name_and_limits(self) -> None:
        one = bundle.specification("/r", bundle.resources(100, 1.0, 10), "/a")
        two = bundle.specification("/r", bundle.resources(900, 2.0, 90), "/b")
        assert one["hostname"] != two["hostname"]
        for spec in (one, two):
            del spec["hostname"], spec["linux"]["resources"], spec["linux"]["cgroupsPath"]
        assert one == two


class TestEnds:
    def test_the_way_a_sentry_ended_is_told(self) -> None:
        assert how_it_ended(0) == ("exited", "status 0")
        assert how_it_ended(3 << 8) == ("exited", "status 3")
        assert how_it_ended(9) == ("killed", "by SIGKILL")
        assert how_it_ended(None)[0] == "lost"

    def test_the_last_words_of_a_guest_are_one_printable_line(self) -> None:
        stdio, theirs = new_stdio()
        assert stdio.last_words() == ""
        os.write(theirs[2], b"Traceback\n  File\nModuleNotFoundError: no \x1b[1mmodule\n")
        assert stdio.last_words() == "ModuleNotFoundError: no [1mmodule"
        stdio.close()
        for number in theirs:
            os.close(number)
