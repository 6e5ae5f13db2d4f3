"""Prints the status of each event that a webhook is sent: python3 receive.py whsec_…"""

import base64, hmac, json, sys, wsgiref.simple_server


def receive(sent, answer):
    body = sent["wsgi.input"].read(int(sent["CONTENT_LENGTH"]))
    signed = f"{sent['HTTP_WEBHOOK_ID']}.{sent['HTTP_WEBHOOK_TIMESTAMP']}.".encode() + body
    key = base64.b64decode(sys.argv[1].removeprefix("whsec_"))
    right = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    if verified := right in sent["HTTP_WEBHOOK_SIGNATURE"].split():
        print(json.loads(body)["data"]["status"], sent["HTTP_WEBHOOK_ID"], flush=True)
    answer("204 No Content" if verified else "401 Unauthorized", [])
    return []


wsgiref.simple_server.make_server("127.0.0.1", 8180, receive).serve_forever()
