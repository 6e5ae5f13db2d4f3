"""Nova in one process: the real API, scheduler, conductor and placement, and computes that pretend.

Run by the Python of .venv-nova. Nova's own functional tests put it together like this; here it
serves at a port of loopback. Keystone is a stand-in: whoever has the secret gets a token.

Prints its URL when it serves, and ends when its standard input does.
"""

import json
import logging
import os
import sys
import threading
import traceback
import unittest
import warnings
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

os.environ["OS_TEST_TIMEOUT"] = "0"
# Threads instead of eventlet, whose loop would stand still while this waits for its input.
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

from nova.tests.functional import integrated_helpers
from nova.virt import fake

SECRET = "open-sesame"
TOKEN = "token-of-an-administrator"


class Hypervisor(fake.FakeLiveMigrateDriver):
    """A VM's metadata says how its live migration goes: slowly, or not at all."""

    def live_migration(  # noqa: PLR0917  # it is Nova that calls it
        self, context, instance, dest, post, recover, block_migration=False, migrate_data=None
    ):
        how = instance.metadata.get("lab", "")
        if how == "slow":
            super().live_migration(
                context, instance, dest, post, recover, block_migration, migrate_data
            )
        elif how == "fails":
            recover(context, instance, dest, migrate_data)
        else:
            post(context, instance, dest, block_migration, migrate_data)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Front:
    """`/identity` is Keystone's, `/compute` Nova's, and `/lab` changes how they behave."""

    def __init__(self, nova):
        self.nova = nova
        self.is_broken = False
        self.tokens = 0

    def __call__(self, environ, respond):
        first, _, rest = environ["PATH_INFO"].lstrip("/").partition("/")
        if first == "lab":
            self.is_broken = rest == "break"
            if rest == "expire":
                self.tokens += 1
            return reply(respond, "204 No Content")
        if first == "identity":
            return self.authenticate(environ, respond)
        if self.is_broken:
            return reply(respond, "500 Internal Server Error", {"error": {"message": "broken"}})
        if environ.get("HTTP_X_AUTH_TOKEN") not in (f"{TOKEN}-{self.tokens}", "of the tests"):
            return reply(respond, "401 Unauthorized", {"error": {"message": "no such token"}})
        environ["SCRIPT_NAME"] += f"/{first}"
        environ["PATH_INFO"] = f"/{rest}"
        environ["HTTP_X_USER_ID"] = "admin"
        environ["HTTP_X_PROJECT_ID"] = integrated_helpers.nova_fixtures.PROJECT_ID
        environ["HTTP_X_ROLES"] = "admin,member,reader"
        return self.nova(environ, respond)

    def authenticate(self, environ, respond):
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        if body["auth"]["identity"]["application_credential"]["secret"] != SECRET:
            message = "The request you have made requires authentication."
            return reply(respond, "401 Unauthorized", {"error": {"message": message}})
        url = f"http://{environ['HTTP_HOST']}/compute/v2.1"
        endpoints = [{"interface": "public", "region": "lab", "url": url}]
        catalog = [{"type": "compute", "endpoints": endpoints}]
        headers = [("X-Subject-Token", f"{TOKEN}-{self.tokens}")]
        return reply(respond, "201 Created", {"token": {"catalog": catalog}}, headers)


def reply(respond, status, body=None, headers=()):
    content = b"" if body is None else json.dumps(body).encode()
    respond(status, [("Content-Length", str(len(content))), *headers])
    return [content]


class Lab(integrated_helpers.ProviderUsageBaseTestCase):
    compute_driver = "fake.Hypervisor"

    def setUp(self):
        from nova.api import auth  # not before Nova has chosen threads

        create_context = auth.NovaKeystoneContext._create_context
        # Nova's tests look for it in a checkout of the sources.
        self.flags(api_paste_config=f"{sys.prefix}/etc/nova/api-paste.ini", group="wsgi")
        self.flags(instances=-1, cores=-1, ram=-1, group="quota")
        super().setUp()
        # Their stand-in forgets the request's id, under which Nova records what it does.
        auth.NovaKeystoneContext._create_context = staticmethod(create_context)
        self.spare_processors()

    def spare_processors(self):
        """Leave out what Nova's tests do to test Nova itself: half of all that it would take."""
        from futurist import _thread  # not before Nova has chosen threads

        # They wake every idle thread a hundred times a second, to end sooner.
        _thread.ThreadWorker.MAX_IDLE_FOR = 60
        # They format every message, also those that nobody reads.
        logging.getLogger().setLevel(logging.WARNING)
        # They compare every answer with its schema.
        self.flags(response_validation="ignore", group="api")

    def test_serve(self):
        try:
            self.serve()
        except BaseException:  # noqa: BLE001  # Nova ends services by SystemExit, and tests by others
            traceback.print_exc()
            os._exit(1)

    def serve(self):
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        for host in ("hv-a", "hv-b"):
            self._start_compute(host)
        front = Front(self.api_fixture.app())
        served = make_server("127.0.0.1", 0, front, server_class=Server, handler_class=Quiet)
        threading.Thread(target=served.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{served.server_port}", flush=True)  # noqa: T201
        sys.stdin.read()
        # What it would undo ends with the process.
        os._exit(0)


if __name__ == "__main__":
    fake.Hypervisor = Hypervisor  # Nova takes drivers of its own package only
    unittest.main(argv=["nova", "Lab.test_serve"], verbosity=0)
