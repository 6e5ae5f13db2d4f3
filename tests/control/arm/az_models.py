"""What the real az puts of what it got. Run by az's own Python, over any number of bodies.

A line in is `{"kind": "vm" | "vmss" | "avset", "body": …}`, the body of an answer to a GET. A line
out is `{"put": …}`, the body that `az … update` without any change sends then, or `{"error": …}`.
From one request to the next it is all az's own code; what is not there is the network.
"""
# mypy: ignore-errors
# The types are in az's own environment.

import json
import os
import sys
from types import SimpleNamespace

# Before az is imported: it tells Microsoft what it does.
os.environ["AZURE_CORE_COLLECT_TELEMETRY"] = "no"

from azure.cli.command_modules.vm import custom
from azure.cli.command_modules.vm.operations.vm_availability_set import AvailabilitySetUpdate
from azure.cli.core import get_default_cli
from azure.cli.core.aaz import _client, _command_ctx
from azure.core import PipelineClient
from azure.core.pipeline.policies import ContentDecodePolicy


class Put(Exception):  # noqa: N818  # it is no failure
    """What az was about to send."""


class Wire(PipelineClient):
    """In the place of az's own client."""

    body = None

    def __init__(self, *_, **__) -> None:
        super().__init__("https://localhost", pipeline=object())

    def send_request(self, request, **_):
        if request.method == "PUT":
            raise Put(request.body)
        return SimpleNamespace(
            http_response=SimpleNamespace(status_code=200),
            context={ContentDecodePolicy.CONTEXT_NAME: Wire.body},
        )


def update(kind):
    command = SimpleNamespace(cli_ctx=get_default_cli())
    if kind == "vm":
        got = custom.get_vm_to_update_by_aaz(command, "g", "n")
        return custom.update_vm(command, "g", "n", parameters=got)
    if kind == "vmss":
        got = custom.get_vmss_modified_by_aaz(command, "g", "n")
        return custom.update_vmss(command, "g", "n", parameters=got)
    names = {"resource_group": "g", "availability_set_name": "n"}
    return AvailabilitySetUpdate(cli_ctx=command.cli_ctx)(command_args=names)


def main() -> None:
    _client.registered_clients["MgmtClient"] = Wire
    _command_ctx.AAZCommandCtx.get_login_credential = lambda _: None
    _command_ctx.AAZCommandCtx.subscription_id = "00000000-0000-0000-0000-000000000000"
    # It looks for the name of a location with a blank in it, and takes it as it is if none is found.
    _command_ctx.get_subscription_locations = lambda _: []
    for line in sys.stdin:
        asked = json.loads(line)
        Wire.body = asked["body"]
        try:
            update(asked["kind"]).result()
        except Put as sent:
            answer = {"put": json.loads(sent.args[0])}
        except Exception as error:  # noqa: BLE001  # whatever az says to a person
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
