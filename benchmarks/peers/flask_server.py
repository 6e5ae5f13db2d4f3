"""A mock of scheduled events as Microsoft's is made: a Flask app on Flask's own server."""
# mypy: ignore-errors
# Flask is installed for the benchmark alone, where the checks can't see it.

import json
import sys

from flask import Flask, jsonify, request

app = Flask(__name__)
DOCUMENT = json.load(sys.stdin)


@app.route("/metadata/scheduledevents", methods=["GET", "POST"])
def scheduled_events():
    if request.headers.get("Metadata", "").lower() != "true":
        return jsonify({"error": "Bad request: . Required metadata header not specified"}), 400
    if "api-version" not in request.args:
        return jsonify({"error": "Bad request. api-version was not specified"}), 400
    if request.method == "POST":
        return "", 200
    return jsonify(DOCUMENT)


if __name__ == "__main__":
    app.logger.disabled = True
    app.run(host="127.0.0.1", port=int(sys.argv[1]))
