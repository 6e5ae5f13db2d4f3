"""Clients that get a resource and put it back: what they make of what they got."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from azure.mgmt.compute import models

AZ: Final = Path(__file__).parents[3] / ".venv-az" / "bin" / "python"


class Kind(StrEnum):
    MACHINE = "vm"
    SCALE_SET = "vmss"
    AVAILABILITY_SET = "avset"
    INSTANCE = "instance"


Reader = Callable[[Kind, Any], Any]

_MODELS: Final = {
    Kind.MACHINE: models.VirtualMachine,
    Kind.SCALE_SET: models.VirtualMachineScaleSet,
    Kind.AVAILABILITY_SET: models.AvailabilitySet,
    Kind.INSTANCE: models.VirtualMachineScaleSetVM,
}


def plain(_: Kind, body: Any) -> Any:
    """Whoever sends back what they got, to the letter."""
    return body


def azure_sdk(kind: Kind, body: Any) -> Any:
    """Microsoft's SDK for Python, by its model classes."""
    return _MODELS[kind](body).as_dict(exclude_readonly=True)


@contextlib.contextmanager
def real_az() -> Iterator[Reader]:
    assert AZ.exists(), "there is no az to test with: `make az` installs it"
    script = Path(__file__).with_name("az_models.py")
    with (
        # For its settings, which would be those of whoever runs this.
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [AZ, script],
            env=os.environ | {"AZURE_CONFIG_DIR": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as running,
    ):
        assert running.stdin is not None
        assert running.stdout is not None
        sending, receiving = running.stdin, running.stdout

        def read(kind: Kind, body: Any) -> Any:
            sending.write(json.dumps({"kind": kind, "body": body}) + "\n")
            sending.flush()
            answer = json.loads(receiving.readline())
            assert "put" in answer, f"az refuses {body}: {answer['error']}"
            return answer["put"]

        try:
            yield read
        finally:
            sending.close()
