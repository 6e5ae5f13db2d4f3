"""`forewarned reset`."""

import json

from tests.cli.served import Served


def test_a_reset_says_what_there_was_to_put_back(served: Served) -> None:
    served.schedule("web")
    served.run("faults", "add", "reset")
    served.start(served.steered.put_fleet({"vms": [{"name": "new"}]})).result()

    result = served.run("reset")

    assert result.stdout == "ended 1 event, removed 1 fault\nVMs removed: new\n"
    assert served.run("events").stdout == "no open events\n"


def test_a_reset_prints_what_the_api_returned(served: Served) -> None:
    shown = json.loads(served.run("reset", "--json").stdout)

    assert (shown["events"], shown["clock"]["state"]) == (0, "paused")
