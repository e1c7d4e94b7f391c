"""Each package of dist/, or of the folder that is given, installed in an empty folder as a stranger would, and used against a server of its own.

The wheel also brings that server: with its own Python, away from the clone. What machines need (runsc, images) is taken from where setup left it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from everforge import __version__

sys.path.insert(0, str(Path(__file__).resolve().parent))
import node_modules
import workshops

REPO = Path(__file__).resolve().parents[1]
DIST = Path(sys.argv[1] if len(sys.argv) > 1 else REPO / "dist").resolve()
SECONDS_MAX = 1200
START_SECONDS = 300  # the template of new machines is made first, where there is none
STOP_SECONDS = 120

PYTHON = """
import everforge
with everforge.Everforge() as client, client.create() as machine:
    print(everforge.__version__, machine.run("6 * 7").value)
    machine.delete()
"""
TYPESCRIPT = """
import { Everforge, VERSION } from "everforge";
const client = new Everforge();
const machine = await client.create();
console.log(VERSION, (await machine.run("6 * 7")).value);
await machine.delete();
await client.close();
"""
RUST = """
#[tokio::main]
async fn main() -> Result<(), everforge::Error> {
    let client = everforge::Everforge::new()?;
    let machine = client.create().await?;
    println!("{} {}", everforge::VERSION, machine.run("6 * 7").await?.value.unwrap_or_default());
    machine.delete().await
}
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="everforge-release-") as name:
        folder = Path(name)
        everforge = install_wheel(folder / "python")
        with server(everforge, folder / "data") as access:
            check("the wheel", [everforge.with_name("python"), "-c", PYTHON], folder, access)
            check("its command line", [everforge, "machine", "list", "--json"], folder, access, "[")
            check_npm(folder / "typescript", access)
            whole = check_crate(folder / "rust", access)
    print(f"release-check: {'every package' if whole else 'every package but the crate'} of {__version__} works from an empty folder")
    return 0


def install_wheel(folder: Path) -> Path:
    say("the wheel, in an environment of its own")
    uv = REPO / ".venv/bin/uv"
    run([uv, "venv", "--quiet", "--python", sys.executable, folder])
    run([uv, "pip", "install", "--quiet", "--python", folder / "bin/python", DIST / f"everforge-{__version__}-py3-none-any.whl"])
    return folder / "bin/everforge"


@contextmanager
def server(everforge: Path, data: Path) -> Iterator[dict[str, str]]:
    say("a server from the wheel")
    command = [everforge, "serve", "--port", "0", "--data", data]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", env=without_ours())
    assert process.stdout is not None
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                late.cancel()
                yield {"EVERFORGE_URL": line.removeprefix("ready ").strip(), "EVERFORGE_TOKEN": (data / "owner.token").read_text().strip()}
                break
        else:
            raise SystemExit("release-check: the server of the wheel did not start")
    finally:
        late.cancel()
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def check_npm(folder: Path, access: dict[str, str]) -> None:
    say("the npm package")
    node = node_modules.node()
    assert node is not None, "needs node 20 or later"
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (folder / "example.js").write_text(TYPESCRIPT)
    env = node_modules.environment(node) | access
    run([node.parent / "npm", "install", "--silent", "--no-audit", "--no-fund", DIST / f"everforge-{__version__}.tgz"], folder, env)
    check("the npm package", [node, "example.js"], folder, env)
    check("its command line", [node.parent / "npx", "--no-install", "everforge", "machine", "list", "--json"], folder, env, "[")


def check_crate(folder: Path, access: dict[str, str]) -> bool:
    """Was there a compiler for it? What it depends on is built once, and kept outside."""
    found = workshops.cargo()
    if found is None:
        say("no cargo 1.85 or later: the crate is left out")
        return False
    say("the crate")
    (folder / "src").mkdir(parents=True)
    # The files of a package are dated in the past, and what is older than the last build is not built: so they are as old as their unpacking.
    run(["tar", "xzmf", DIST / f"everforge-{__version__}.crate", "-C", folder])
    (folder / "src/main.rs").write_text(RUST)
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "example"\nversion = "0.0.0"\nedition = "2021"\n\n[profile.dev]\ndebug = 0\n\n[dependencies]\n'
        f'everforge = {{ path = "everforge-{__version__}" }}\ntokio = {{ version = "1", features = ["macros", "rt-multi-thread"] }}\n'
    )
    (folder / "Cargo.lock").write_bytes((folder / f"everforge-{__version__}" / "Cargo.lock").read_bytes())
    target = workshops.workshop("dist", folder / "Cargo.toml")
    env = {**without_ours(), **access, **workshops.settings(target)}
    with workshops.held(target, folder / "Cargo.toml"):
        check("the crate", [found, "run", "--quiet"], folder, env)
        run([found, "build", "--quiet", "--package", "everforge", "--bin", "everforge"], folder, env)
        check("its command line", [target / "debug/everforge", "machine", "list", "--json"], folder, env, "[")
    return True


# --- one command ------------------------------------------------------------------------------------------------------------------------------


def check(what: str, command: Sequence[str | Path], folder: Path, env: dict[str, str], wanted: str = f"{__version__} 42") -> None:
    got = run(command, folder, {**without_ours(), **env})
    if wanted not in got:
        raise SystemExit(f"release-check: {what} printed {got!r}, not {wanted!r}")


def run(command: Sequence[str | Path], folder: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, env=env or without_ours(), stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise SystemExit(f"release-check: {' '.join(map(str, command))[:200]} ended with {done.returncode}")
    return done.stdout


def without_ours() -> dict[str, str]:
    """Nothing that points back to the clone, or to another server."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_URL", "EVERFORGE_TOKEN", "FOREVERVM_", "VIRTUAL_ENV"))
    }


def say(text: str) -> None:
    print(f"release-check: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
