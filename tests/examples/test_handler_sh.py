"""The handler in bash reads documents without a JSON library: it must read them as Python does."""

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HANDLER = Path(__file__).parents[2] / "examples" / "handlers" / "handler.sh"
ID = "C7061BAC-AFDC-4513-B24B-AA5F13A1{:04X}"
# Each body on a line of its own; for each a line of what was read, or of its absence.
PROGRAM = """
set -u
export LC_ALL=C
declare -A types statuses resources
{function}
while IFS= read -r body; do
  if read_document; then
    for id in "${{ids[@]}}"; do
      printf '%s/%s/%s/%s;' "$id" "${{types[$id]}}" "${{statuses[$id]}}" "${{resources[$id]//$'\\n'/,}}"
    done
    echo
  else
    echo unreadable
  fi
done
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


def read(*bodies: str) -> list[str]:
    function = re.search(
        r"^read_document\(\) \{$.*?^\}$", HANDLER.read_text(), re.MULTILINE | re.DOTALL
    )
    assert function is not None
    done = subprocess.run(
        ["bash", "-c", PROGRAM.format(function=function[0])],
        input="".join(f"{body}\n" for body in bodies),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def expected(document: dict[str, Any]) -> str:
    return "".join(
        f"{event['EventId'].upper()}/{event['EventType']}/{event['EventStatus']}/"
        + "".join(f"{name}," for name in event["Resources"])
        + ";"
        for event in document["Events"]
    )


def a_document(chance: random.Random) -> dict[str, Any]:
    return _with_unknowns(
        {
            "DocumentIncarnation": chance.randint(0, 500),
            "Events": [
                _with_unknowns(
                    {
                        "EventId": ID.format(number).swapcase()
                        if number % 2
                        else ID.format(number),
                        "EventStatus": chance.choice(["Scheduled", "Started"]),
                        "EventType": chance.choice(["Reboot", "Freeze", "Blackout"]),
                        "Resources": [f"web_{n}" for n in range(chance.randint(0, 3))],
                        "NotBefore": chance.choice(["", "Mon, 19 Sep 2016 18:29:47 GMT"]),
                    },
                    chance,
                )
                for number in range(chance.randint(0, 4))
            ],
        },
        chance,
    )


def _with_unknowns(fields: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    unknown = [
        ("Severity", {"Level": 3, "EventId": "x", "Labels": ["a", None, {"Events": [{}]}]}),
        ("Links", []),
        ("Note", 'a "quoted" \\ [text], {with}: all, of it'),
        ("Resources2", [["web_9"], {"EventStatus": "Started"}]),
        ("Ratio", -1.5e3),
        ("Is", True),
    ]
    items = [*fields.items(), *chance.sample(unknown, chance.randint(0, 4))]
    chance.shuffle(items)
    return dict(items)


def test_documents_are_read_with_whatever_else_is_in_them() -> None:
    chance = random.Random(16)
    documents = [a_document(chance) for _ in range(40)]
    written = [
        json.dumps(document, separators=chance.choice([(",", ":"), (" , ", " : ")]))
        for document in documents
    ]

    assert read(*written) == [expected(document) for document in documents]


def test_what_is_not_a_whole_document_is_not_read() -> None:
    """To go by a part of it would take the other events for gone."""
    event = {"EventId": ID.format(1), "EventStatus": "Started", "Resources": ["a", "b"]}
    whole = json.dumps({"DocumentIncarnation": 3, "Events": [event]})
    bodies = [whole[:length] for length in range(0, len(whole), 3)]
    bodies += ["<html>sign in</html>", "[]", "null", "{}", whole + "}", whole + whole]
    bodies += ['{"DocumentIncarnation":1}', '{"Events":[]}', '{"error":"busy"}']
    bodies += ['{"DocumentIncarnation":1,"Events":{}}', '{"DocumentIncarnation":"x","Events":[]}']
    bodies += ['{"DocumentIncarnation":1,"Events":[{"EventId":"../../etc"}]}']
    bodies += ['{"DocumentIncarnation":1,"Events":[{}]}', '{"DocumentIncarnation":1,"Events":[]]']

    assert set(read(*bodies)) == {"unreadable"}
    assert len(read(whole)) == 1
