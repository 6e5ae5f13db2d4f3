"""Approvals as most people would write them: Starlette, sqlite3, and a commit for each request."""

import sqlite3
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def application(database: Path) -> Starlette:
    # As durable as ours: WAL, synchronous=FULL. One thread serves, so one connection will do.
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (id TEXT PRIMARY KEY, status TEXT)")
    connection.execute("CREATE TABLE history (id INTEGER PRIMARY KEY, event_id TEXT, action TEXT)")

    async def approve(request: Request) -> Response:
        if request.headers.get("Metadata", "").lower() != "true":
            return JSONResponse({"error": "Required metadata header not specified"}, 400)
        event_ids = [each["EventId"] for each in (await request.json())["StartRequests"]]
        connection.execute("BEGIN IMMEDIATE")
        for event_id in event_ids:
            connection.execute("INSERT OR REPLACE INTO events VALUES (?, 'Started')", (event_id,))
            for action in ("approved", "started"):
                connection.execute(
                    "INSERT INTO history (event_id, action) VALUES (?, ?)", (event_id, action)
                )
        connection.execute("COMMIT")
        return Response()

    return Starlette(
        routes=[Route("/vm/{name}/metadata/scheduledevents", approve, methods=["POST"])]
    )


if __name__ == "__main__":
    app = application(Path.cwd() / "approvals.sqlite")
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
