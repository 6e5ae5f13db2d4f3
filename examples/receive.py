"""Prints the status of each event that a webhook is sent: python3 receive.py whsec_…"""

import base64, hmac, http.server, json, sys, time

KEY = base64.b64decode(sys.argv[1].removeprefix("whsec_"))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        id, at = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        right = b"v1," + base64.b64encode(hmac.digest(KEY, f"{id}.{at}.".encode() + body, "sha256"))
        signatures = self.headers["webhook-signature"].encode().split()
        verified = (
            any(hmac.compare_digest(right, each) for each in signatures)
            and abs(time.time() - int(at)) < 300
        )
        self.send_response(204 if verified else 401)
        self.end_headers()
        if verified:
            print(json.loads(body)["data"]["status"], id, flush=True)


http.server.HTTPServer(("127.0.0.1", 8180), Receiver).serve_forever()
