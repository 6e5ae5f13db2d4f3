"""Take the pictures of the console that the documentation shows: `make screenshots`.

They are honest: a server of its own, with its demo fleet, is asked for everything that is seen.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode

from playwright.async_api import Browser, async_playwright
from typing_extensions import override

from forewarned.service.fleet.declaration import NO_SUBSCRIPTION

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs" / "assets"
CHROMIUM: Final = Path("/usr/bin/chromium")
WIDE: Final = (1200, 900)
PHONE: Final = (390, 844)
GONE: Final = "/down"

_SET: Final = (
    f"/subscriptions/{NO_SUBSCRIPTION}/resourceGroups/demo"
    "/providers/Microsoft.Compute/virtualMachineScaleSets/api"
)
_DOOR: Final = re.compile(r"^\s*(metadata|control)\s+http://(\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    metadata: str
    control: str

    def call(self, method: str, path: str, body: object = None) -> Any:  # whatever JSON it answers
        return json.loads(_ask(self.control, method, path, body))

    def read_as(self, vm: str) -> None:
        """Switch notice on for a scope, as its VMs do by reading."""
        path = f"/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01"
        _ask(self.metadata, "GET", path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    name: str
    path: str
    size: tuple[int, int] = WIDE
    once: str = '#live-state[data-state="live"]'
    """A selector of an element that exists once the page is complete."""


def main() -> None:
    if not CHROMIUM.exists():
        sys.exit(f"no {CHROMIUM}: install it with `apt install chromium`")
    with (
        tempfile.TemporaryDirectory() as folder,
        receiver() as hook,
        emulator(Path(folder) / "state") as running,
    ):
        subscribe(running, hook)
        event_id = tell_story(running)
        settle(running)
        asyncio.run(take(running, pictures(event_id)))
        with emulator(Path(folder) / "guarded", "--control-access", "token") as guarded:
            asyncio.run(take(guarded, (Picture(name="sign-in", path="/sign-in", once="#token"),)))


def pictures(event_id: str) -> tuple[Picture, ...]:
    return (
        Picture(name="home", path="/"),
        Picture(name="fleet", path="/fleet"),
        Picture(name="event", path=f"/events/{event_id}"),
        Picture(name="vm", path="/vms/web"),
        Picture(name="scope", path="/scopes/avset/db"),
        Picture(name="do", path="/actions"),
        Picture(name="schedule", path="/actions/schedule?vm=web&type=Reboot"),
        Picture(name="sets", path="/sets"),
        Picture(name="new-set", path="/sets/new"),
        Picture(name="set", path=f"/sets/edit?{urlencode({'id': _SET})}"),
        Picture(name="history", path="/history"),
        Picture(name="subscriptions", path="/subscriptions"),
        Picture(name="phone", path="/", size=PHONE),
    )


def subscribe(running: Emulator, hook: str) -> None:
    """One that fares well, one that does not, and one that is paused."""
    for name, path, more in (
        ("ops", "/", {}),
        ("oncall", GONE, {"filter": {"types": ["Reboot", "Redeploy"]}}),
        ("ledger", "/", {"shape": {"kind": "event-grid"}}),
    ):
        target = {"kind": "webhook", "url": f"{hook}{path}"}
        running.call("POST", "/v1/subscriptions", {"name": name, "target": target, **more})
    running.call("POST", "/v1/subscriptions/ledger/pause")


def settle(running: Emulator) -> None:
    """Wait until the subscriptions are as they are to be shown: messages go in real time."""
    waiting = threading.Event()
    for _ in range(600):
        shown = running.call("GET", "/v1/subscriptions")["subscriptions"]
        found = {each["name"]: each for each in shown}
        if found["oncall"]["condition"] == "failing" and not found["ops"]["health"]["pending"]:
            return
        waiting.wait(0.1)
    sys.exit("the subscriptions did not come to rest")


@contextmanager
def receiver() -> Iterator[str]:
    """A web service that takes every message, except at one path."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as the base class names it
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503 if self.path == GONE else 204)
            self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def tell_story(running: Emulator) -> str:
    """Fill the demo fleet with a busy half hour; return the id of the event to show."""
    for vm in ("web", "db-0", "api_0", "spot_0", "FrontEnd_IN_0"):
        running.read_as(vm)
    [done] = schedule(running, "Freeze", "db-1", duration="2m")
    step(running, "3m")
    running.call("POST", f"/v1/events/{done}/approve")
    schedule(running, "Freeze", "db-3", duration="3m")
    step(running, "4m")
    [called_off] = schedule(running, "Reboot", "db-0")
    running.call("POST", "/v1/scopes/service/shop/maintain", {"type": "Reboot", "duration": "5m"})
    step(running, "3m")
    [moved] = schedule(running, "Redeploy", "db-2")
    [watched] = schedule(running, "Reboot", "web", duration="4m")
    running.call("POST", f"/v1/events/{called_off}/cancel", {"reason": "after the release"})
    step(running, "2m")
    running.call("POST", f"/v1/events/{moved}/approve")
    schedule(running, "Terminate", "api_0", "api_1")
    step(running, "100s")
    schedule(running, "Preempt", "spot_0")
    step(running, "10s")
    return watched


def schedule(running: Emulator, type_: str, *vms: str, **more: str) -> list[str]:
    asked = {"type": type_, "resources": vms, **more}
    made = running.call("POST", "/v1/events", asked)["events"]
    return [event["event_id"] for event in made]


def step(running: Emulator, by: str) -> None:
    running.call("POST", "/v1/clock/step", {"by": by})


async def take(running: Emulator, wanted: tuple[Picture, ...]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--font-render-hinting=none"]
        )
        for picture in wanted:
            for scheme in ("light", "dark"):
                await _take_one(browser, running, picture, scheme)
        await browser.close()


async def _take_one(
    browser: Browser, running: Emulator, picture: Picture, scheme: Literal["light", "dark"]
) -> None:
    width, height = picture.size
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = await context.new_page()
    answer = await page.goto(f"http://{running.control}{picture.path}")
    if answer is None or not answer.ok:
        sys.exit(f"{picture.path} is not there to be pictured")
    await page.wait_for_selector(picture.once)
    file = PICTURES / f"console-{picture.name}-{scheme}.png"
    await page.screenshot(path=file)
    await context.close()
    print(file.relative_to(ROOT))


@contextmanager
def emulator(state: Path, *flags: str) -> Iterator[Emulator]:
    anywhere = [word for door in ("metadata", "control") for word in (f"--{door}", "127.0.0.1:0")]
    command = [sys.executable, "-m", "forewarned", "serve", "--clock", "paused", *anywhere]
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("FOREWARNED_")
    }
    with subprocess.Popen(
        [*command, "--arm", "off", "--data", str(state), "--log-level", "warning", *flags],
        stdout=subprocess.PIPE,
        text=True,
        env=clean | {"NO_COLOR": "1"},
    ) as running:
        try:
            yield _ready(running)
        finally:
            running.send_signal(signal.SIGTERM)


def _ready(running: subprocess.Popen[str]) -> Emulator:
    assert running.stdout is not None
    doors: dict[str, str] = {}
    for line in running.stdout:
        if found := _DOOR.match(line):
            doors[found[1]] = found[2]
        if line.startswith("Stop with"):
            return Emulator(**doors)
    sys.exit("the server did not start")


def _ask(door: str, method: str, path: str, body: object = None) -> bytes:
    connection = HTTPConnection(door, timeout=60)
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {"Metadata": "true"})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    if response.status >= 400:
        sys.exit(f"{method} {path}: {answer.decode()}")
    return answer


if __name__ == "__main__":
    main()
