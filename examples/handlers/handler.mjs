#!/usr/bin/env node
// Prepares this VM for its scheduled events, approves them, and recovers from them.
// Needs Node 18 and no packages. What it has done is in $STATE_DIRECTORY, which systemd sets.
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// --- your part ----------------------------------------------------------------------------------
// Either may run again after a crash, so running it twice must do no harm.

/** Drain, checkpoint, fail over. If it fails it is tried again, and the event is not approved. */
async function prepare(type, id) {
  console.log(`preparing for ${type} ${id}`);
}

/** Accept work again. Also runs after an event that was canceled. */
async function recover(type, id) {
  console.log(`recovering from ${type} ${id}`);
}

// --- the service --------------------------------------------------------------------------------

const SERVICE = process.env.METADATA_ENDPOINT ?? "http://169.254.169.254";
const EVENTS = "/metadata/scheduledevents?api-version=2020-07-01";
const OWN_NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
const STATE = join(process.env.STATE_DIRECTORY ?? ".", "scheduled-events");
const LARGEST = 1_000_000;
// An agent of our own: the global one may have been told to use a proxy, and the service is this
// machine's own.
const agent = new http.Agent({ keepAlive: true });

class Failure extends Error {
  retryAfter = 0;
}

/** The body of a whole 200; anything else is a Failure. Redirects are not followed. */
function ask(path, seconds, body) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(why instanceof Failure ? why : new Failure(why));
    const request = http.request(SERVICE + path, {
      agent,
      method: body === undefined ? "GET" : "POST",
      headers: { Metadata: "true", ...(body && { "Content-Type": "application/json" }) },
      signal: AbortSignal.timeout(seconds * 1000),
    });
    request.on("error", (error) => fail(`no answer: ${error.message}`));
    request.on("response", (response) => {
      const chunks = [];
      let length = 0;
      response.on("data", (chunk) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > LARGEST) request.destroy(new Error("too much of it"));
      });
      response.on("error", (error) => fail(`broken off: ${error.message}`));
      response.on("end", () => {
        if (response.statusCode === 200) return resolve(Buffer.concat(chunks).toString());
        const failure = new Failure(`the service answered ${response.statusCode}`);
        failure.retryAfter = Number(response.headers["retry-after"]) || 0;
        fail(failure);
      });
    });
    request.end(body);
  });
}

/**
 * The events by id. Fails unless it is a whole document: to go by half of one would take events for
 * gone that are still to come. Unknown fields and types do no harm; NotBefore, which is blank in an
 * event that has started, is not needed.
 */
function readDocument(body) {
  let document;
  try {
    document = JSON.parse(body);
  } catch {
    throw new Failure(`that is not JSON: ${JSON.stringify(body.slice(0, 100))}`);
  }
  if (!Number.isInteger(document?.DocumentIncarnation) || !Array.isArray(document.Events))
    throw new Failure("that is not a document of events");
  const events = new Map();
  for (const { EventId, EventType, EventStatus, Resources } of document.Events) {
    // The id becomes the name of a file.
    if (typeof EventId !== "string" || !/^[A-Za-z0-9-]+$/.test(EventId))
      throw new Failure("an event has no id");
    // Names are the same in any letter case, and so are ids.
    const names = (Resources ?? []).map((name) => String(name).toLowerCase());
    events.set(EventId.toUpperCase(), { type: EventType, status: EventStatus, names });
  }
  return events;
}

// --- the journal: one file for each event, with what has been done and the event's type ---------

const journal = new Map();

async function openJournal() {
  await mkdir(STATE, { recursive: true });
  for (const id of await readdir(STATE)) {
    if (id.startsWith(".")) continue;
    journal.set(id, JSON.parse(await readFile(join(STATE, id), "utf8")));
  }
}

/** On disk when this returns, in one piece. */
async function note(id, phase, type) {
  const draft = join(STATE, `.${id}`);
  const file = await open(draft, "w");
  try {
    await file.writeFile(JSON.stringify({ phase, type }));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(STATE, id));
  journal.set(id, { phase, type });
  console.log(`${phase}: ${type} ${id}`);
}

// --- what to do ---------------------------------------------------------------------------------

const preparing = new Map();

/** In the background: the next event may leave less time than this one takes to prepare for. */
function startPreparing(id, type) {
  if (preparing.has(id)) return;
  const work = prepare(type, id)
    .then(() => journal.has(id) && note(id, "prepared", type))
    .catch((error) => console.error(`can't prepare for ${id}: ${error.message}`))
    .finally(() => preparing.delete(id));
  preparing.set(id, work);
}

async function attend(id, { type, status, names }, me) {
  switch (journal.get(id)?.phase) {
    case undefined:
      await note(id, "preparing", type);
    // falls through: also after a failure, or if this program was killed meanwhile
    case "preparing":
      startPreparing(id, type);
      return;
    case "prepared":
      // An event that has started needs no approval; it may never have been Scheduled. An approval
      // counts for all VMs that an event names, so only the first of them sends it.
      if (status !== "Scheduled" || names[0] !== me) return;
      // Recorded first: after a crash it is not sent twice. At worst the event waits for NotBefore.
      await note(id, "approving", type);
      try {
        await ask(EVENTS, 15, JSON.stringify({ StartRequests: [{ EventId: id }] }));
      } catch (error) {
        await note(id, "prepared", type);
        throw error;
      }
      await note(id, "approved", type);
  }
}

/** An event that the document no longer has is over. Only a whole document can tell. */
async function recoverFromEnded(events) {
  for (const [id, { type }] of [...journal]) {
    if (events.has(id)) continue;
    await preparing.get(id);
    await recover(type, id);
    journal.delete(id);
    await rm(join(STATE, id));
    console.log(`over: ${id}`);
  }
}

// The first read switches scheduled events on, which takes up to two minutes.
let patience = 130;
let me = "";

async function look() {
  const body = await ask(EVENTS, patience);
  patience = 15;
  const events = readDocument(body);
  me ||= (await ask(OWN_NAME, 15)).trim().toLowerCase();
  let failure;
  for (const [id, event] of events) {
    // An event that fails must not keep the others waiting.
    if (event.names.includes(me)) await attend(id, event, me).catch((error) => (failure = error));
  }
  await recoverFromEnded(events);
  if (failure) throw failure;
}

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
await openJournal();
for (let failures = 0; ; ) {
  let pause = 1;
  try {
    await look();
    failures = 0;
  } catch (error) {
    console.error(error instanceof Failure ? error.message : error);
    // Twice as long each time, but a Spot VM has 30 seconds from notice to eviction.
    pause = Math.max(2 ** Math.min(failures++, 3), Math.min(error.retryAfter ?? 0, 10));
  }
  await sleep(pause * 1000);
}
