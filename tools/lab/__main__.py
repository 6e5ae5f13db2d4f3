"""Two hypervisors, two guests, the service, its actuator and the console, to try things with.

`make lab` starts them, says how to use them, and ends them at Ctrl-C.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.end_to_end.namespaces import serving_in
from tests.end_to_end.server_process import environment
from tools.lab.doorway import doorway
from tools.lab.guests import GuestPlan
from tools.lab.lab import Guest, Lab, lab
from tools.lab.packages import NoLabError

ROOT: Final = Path(__file__).resolve().parent.parent.parent
GUESTS: Final = (GuestPlan(name="web", number=1), GuestPlan(name="db", number=2))
"""All of them start on the first host."""
SETTINGS: Final = """
[actuators.rack]
driver = "libvirt"
hosts = ["hv-a", "hv-b"]
uri = "{uri}"
peer_uri = "{peer}"
migrate_to = "tcp://{{target}}-mig"
freeze    = {{ do = "live-migrate", else = "hold" }}
reboot    = {{ do = "acpi", else = "reset", patience = "30s" }}
redeploy  = {{ do = "cold-move", patience = "10s" }}
preempt   = {{ do = "shutdown", else = "destroy", patience = "25s" }}
terminate = {{ do = "undefine" }}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lab", description=__doc__)
    parser.add_argument("--port", type=int, default=8170, help="of the console and of commands")
    given = parser.parse_args()
    # Whoever ends it so means the same as with Ctrl-C, which a shell has background jobs ignore.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt), _running(given.port) as introduction:
            print(introduction, flush=True)
            signal.pause()
    except NoLabError as error:
        print(error, file=sys.stderr)
        return 1
    print("\nended")
    return 0


@contextlib.contextmanager
def _running(port: int) -> Iterator[str]:
    """What to tell the person who has started it."""
    _need_library()
    print("Starting two libvirts and two guests, without KVM: half a minute", flush=True)
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(lab())
        first = next(iter(made.hosts))
        guests = [stack.enter_context(made.guest(plan, host=first)) for plan in GUESTS]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fwlab-service-")))
        settings, fleet = folder / "forewarned.toml", folder / "fleet.toml"
        settings.write_text(SETTINGS.format(uri=made.uri, peer=made.peer_uri))
        _import(made, fleet)
        flags = ("--mode=service", "--workers=1", f"--config={settings}", f"--fleet={fleet}")
        stack.enter_context(serving_in(made.service, folder, *flags, "--control-access=open"))
        for guest in guests:
            guest.serial.wait_for("poll")
        address = stack.enter_context(doorway(port, made.service, ("127.0.0.1", 8082)))
        yield _introduction(made, guests, folder, address)


def _need_library() -> None:
    """Once built, it is there for whatever is imported later."""
    library = [sys.executable, str(ROOT / "tools" / "environment.py"), "libvirt"]
    with contextlib.suppress(ImportError):
        import libvirt  # noqa: F401, PLC0415  # whether it is there

        return
    if subprocess.run(library, check=False).returncode:
        raise NoLabError(
            "libvirt's Python library can't be built: `apt install gcc pkg-config libvirt-dev`"
            " brings what it needs"
        )


def _import(made: Lab, fleet: Path) -> None:
    uris = [made.uri.replace("{host}", name) for name in made.hosts]
    words = ("fleet", "import", "libvirt", *uris, "--output", str(fleet))
    subprocess.run([sys.executable, "-m", "forewarned", *words], env=environment(), check=True)


def _introduction(made: Lab, guests: list[Guest], folder: Path, address: str) -> str:
    program = os.path.relpath(Path(sys.prefix) / "bin" / "forewarned")
    serials = "\n".join(
        f"{each.plan.name:<9} {each.plan.address}, writes what it sees to {each.serial.file}"
        for each in guests
    )
    return f"""{serials}
console   http://{address}/hosts/hv-a
log       {folder}/log
fleet     {folder}/fleet.toml, as `forewarned fleet import libvirt` wrote it
libvirt   {made.uri}

Both guests are on hv-a, and approve their events. Open the console, and in another terminal see the
fleet, empty hv-a, move the guests back, restart one, and see what was done:
  export FOREWARNED_CONTROL={address}
  {program} fleet show
  {program} host drain hv-a --wait
  {program} host undrain hv-a --return
  {program} host status hv-a --wait
  {program} schedule reboot --vm web
  {program} history
Ctrl-C ends all."""


if __name__ == "__main__":
    sys.exit(main())
