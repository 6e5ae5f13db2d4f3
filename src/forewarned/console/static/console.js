// Keeps an open page true: by the server's clock, and by what /v1/changes tells.
//
// Pages work without this script; it only spares people the reload. It decides nothing and makes
// no markup: what it shows it fetches, as the same page that the server shows without a script.
//
// Marks that it knows:
//   [data-live][id]   brought up to date from the page's own address after every change
//   [data-every]      ms: how old it may get, for what changes without an event
//   [data-kept]       inside of those, left as it is
//   [data-address]    of the page, where that is not the one in the bar
//   [data-about]      a scope: the page shows nothing that changes but what changes in it
//   a[data-swap]      followed without a reload
//   #clock-now        data-now, data-speed: the server's clock, which goes on between changes
//   [data-until]      an instant: how far away it is
//   #timeline         data-start, data-span: where the now-line stands
//   #sign-in-again    shown when the session has ended
//   #live-state       told whether the page is live;  #announcer: what happened, for screen readers

import { morph } from "./morph.js";
import { listenToSelection } from "./selection.js";
import { listenToForms } from "./submission.js";

const SETTLE = 5; // ms: changes that come together are fetched together
const BREATH = 250; // ms between two fetches, however many changes there are
const REST = 2; // times as long as the last fetch took: many windows can't wear a server out
const LONGEST_REST = 1_000; // ms: what happens is to be seen within a second, or little more
const TICK = 250;
const STALE = 30_000; // ms: words like "in 5m" may be this old on a page where nothing happens
const CLOCK_CHECK = 800; // ms: what the clock does is to be seen within a second
const LONGEST_PAUSE = 5_000;
const LEAST_MOVE = 0.05; // percent of the timeline's width, about half a pixel
const DRIFT = 0.025; // of the timeline's span, before it is redrawn

// --- the server's clock --------------------------------------------------------------------------

const clock = { at: 0, read: 0, speed: 0, isReal: true };

function readClock() {
  const shown = document.getElementById("clock-now");
  if (shown !== null) {
    setClock(Date.parse(shown.dataset.now), Number(shown.dataset.speed), shown.dataset.clock);
  }
}

function setClock(at, speed, state) {
  Object.assign(clock, { at, speed, read: performance.now(), isReal: state === "real" });
}

function now() {
  return clock.at + (performance.now() - clock.read) * clock.speed;
}

// The clock can be moved in another window without anything happening to an event.
async function checkClock() {
  if (clock.isReal || document.hidden || watching === null) {
    return;
  }
  const response = await fetch("/v1/clock", { cache: "no-store" });
  if (response.status === 401) {
    leaveOff();
  }
  if (!response.ok) {
    return;
  }
  const found = await response.json();
  const off = Math.abs(Date.parse(found.now) - now());
  if (found.speed !== clock.speed || off > 1_000 * Math.max(1, clock.speed)) {
    setClock(Date.parse(found.now), found.speed, found.state);
    tick();
    refreshSoon();
  }
}

function tick() {
  const shown = document.getElementById("clock-now");
  if (shown === null || Number.isNaN(clock.at)) {
    return;
  }
  const at = now();
  setText(shown, new Date(at).toISOString().slice(0, 19).replace("T", " "));
  for (const element of document.querySelectorAll("[data-until]")) {
    setText(element, distance(Date.parse(element.dataset.until) - at));
  }
  moveNowLine(at);
  if (clock.speed > 0 && performance.now() - refreshed > longestAge() && showsEvents()) {
    refreshSoon();
  }
}

function longestAge() {
  return Number(document.querySelector("[data-every]")?.dataset.every ?? STALE);
}

function moveNowLine(at) {
  const timeline = document.getElementById("timeline");
  if (timeline === null) {
    return;
  }
  const span = Number(timeline.dataset.span) * 1_000;
  const x = ((at - Number(timeline.dataset.start) * 1_000) / span) * 100;
  for (const id of ["now-line", "now-flag"]) {
    const mark = document.getElementById(id);
    // Whatever moves has the browser paint all bars again: not for less than can be seen.
    if (mark !== null && Math.abs(x - Number.parseFloat(mark.getAttribute("x"))) >= LEAST_MOVE) {
      mark.setAttribute("x", `${x}%`);
    }
  }
  const isFollowed = "follows" in timeline.dataset;
  if (isFollowed && Math.abs(at - drawn) > DRIFT * span && performance.now() - refreshed > 1_000) {
    refreshSoon();
  }
}

function distance(lead) {
  let rest = Math.floor(Math.abs(lead) / 1_000);
  const parts = [];
  for (const [unit, length] of [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]]) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) {
      parts.push(`${count}${unit}`);
    }
  }
  const words = parts.slice(0, 2).join("") || "0s";
  return lead < 0 ? `${words} ago` : `in ${words}`;
}

function setText(element, words) {
  if (element.textContent !== words) {
    element.textContent = words;
  }
}

// --- bringing the page up to date ----------------------------------------------------------------

let refreshed = performance.now();
let drawn = 0; // the server's time in the picture
let took = 0; // ms: the last fetch, from asking until all of it was there
let planned = null;
let isFetching = false;
let isWanted = false;
let isHurried = false;

function refreshSoon() {
  if (isFetching) {
    isWanted = true;
  } else if (planned === null) {
    const rest = Math.max(BREATH, Math.min(REST * took, LONGEST_REST));
    const breath = rest - (performance.now() - refreshed);
    planned = setTimeout(refresh, Math.max(SETTLE, breath));
  }
}

// After a click, the reader is waiting.
function refreshNow() {
  if (isFetching) {
    isHurried = true;
  } else {
    clearTimeout(planned);
    planned = setTimeout(refresh, 0);
  }
}

// A form shows nothing but the clock of what changes, and the clock is looked at by itself.
function showsEvents() {
  return document.querySelector("[data-live][id]:not(#clock)") !== null;
}

// Where the page is to be had again: a form that was refused is answered at an address of its own.
function ownAddress() {
  return document.querySelector("[data-address]")?.dataset.address ?? location.href;
}

async function refresh() {
  planned = null;
  isFetching = true;
  const asked = performance.now();
  try {
    const address = ownAddress();
    // Windows that fetch the same page at the same time get the same answer.
    const headers = { Accept: "text/html", "Forewarned-Refresh": "true" };
    const response = await fetch(address, { headers, cache: "no-store" });
    // An address that only takes forms has no page of its own: what is there stays.
    if (response.status === 404) {
      tellState("gone");
    } else if (response.redirected && new URL(response.url).pathname === "/sign-in") {
      leaveOff();
    } else if (response.status >= 500) {
      // Nothing tells when it is well again, and what has happened is not shown yet.
      took = LONGEST_REST / REST;
      isWanted = true;
    } else if (response.ok && !response.redirected) {
      const text = await response.text();
      took = performance.now() - asked;
      const page = new DOMParser().parseFromString(text, "text/html");
      if (address === ownAddress()) {
        show(page);
        if (document.getElementById("live-state")?.dataset.state === "gone") {
          tellState("live");
        }
      }
    }
  } catch {
    // The stream of changes notices a lost server, and asks again when it is back.
  } finally {
    isFetching = false;
    refreshed = performance.now();
    const next = isHurried ? refreshNow : isWanted ? refreshSoon : null;
    isHurried = isWanted = false;
    next?.();
  }
}

function show(page) {
  const before = waitingBars();
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const found = page.getElementById(region.id);
    if (found !== null && region.isConnected) {
      morph(region, found);
    }
  }
  readClock();
  drawn = now();
  tick();
  markJumps(before);
}

// --- the timeline --------------------------------------------------------------------------------

function waitingBars() {
  const bars = new Map();
  for (const bar of document.querySelectorAll("#timeline .bar.planned")) {
    bars.set(bar.id, impactOf(bar));
  }
  return bars;
}

function impactOf(bar) {
  return Number.parseFloat(bar.querySelector(".impact")?.getAttribute("x") ?? "0");
}

function markJumps(before) {
  for (const bar of document.querySelectorAll("#timeline .bar.status-Started")) {
    if (before.has(bar.id) && impactOf(bar) < before.get(bar.id) - 0.5) {
      bar.classList.add("jumped");
    }
  }
}

function pointAt(bar) {
  const details = document.getElementById("timeline-details");
  const section = document.getElementById("timeline");
  if (details === null || section === null) {
    return;
  }
  details.hidden = bar === null;
  if (bar === null) {
    return;
  }
  const at = bar.dataset.waitsUntil;
  const lead = at === undefined ? "" : `, ${distance(Date.parse(at) - now())}`;
  details.textContent = bar.getAttribute("aria-label").replace(/^NotBefore .* UTC/m, `$&${lead}`);
  const around = section.getBoundingClientRect();
  const box = bar.getBoundingClientRect();
  const beside = Math.max(0, box.left - around.left);
  const room = around.width - details.offsetWidth;
  details.style.left = `${Math.max(0, Math.min(beside, room))}px`;
  // Above the bar where there is no room in the window below it.
  const isLow = box.bottom + 8 + details.offsetHeight > window.innerHeight;
  const y = isLow ? box.top - 8 - details.offsetHeight : box.bottom + 8;
  details.style.top = `${y - around.top}px`;
}

function barOf(event) {
  return event.target instanceof Element ? event.target.closest("#timeline .bar") : null;
}

function listenToTimeline() {
  for (const name of ["pointerover", "focusin"]) {
    document.addEventListener(name, (event) => pointAt(barOf(event)));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      pointAt(null);
    }
  });
}

// --- links ---------------------------------------------------------------------------------------

function listenToLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[data-swap]") : null;
    const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (link === null || !isPlain || event.button !== 0) {
      return;
    }
    const address = new URL(link.getAttribute("href"), location.href);
    if (address.origin === location.origin && address.pathname === location.pathname) {
      event.preventDefault();
      history.pushState(null, "", address);
      refreshNow();
    }
  });
  window.addEventListener("popstate", () => refreshNow());
}

// --- what happens, as it happens -----------------------------------------------------------------

let watching = null;
let lastId = null;

async function watch() {
  // Coming back to a page is told in two ways, and one stream is enough.
  stopWatching();
  const ours = new AbortController();
  watching = ours;
  let pause = 500;
  while (watching === ours) {
    try {
      // Where the last stream ended, also after a restart of the server and at any node.
      const headers = lastId === null ? {} : { "Last-Event-ID": lastId };
      const response = await fetch("/v1/changes", { signal: ours.signal, cache: "no-store", headers });
      if (response.status === 401) {
        leaveOff();
        return;
      }
      if (!response.ok) {
        throw new Error(`no changes to watch: ${response.status}`);
      }
      for await (const message of messages(response.body)) {
        pause = 500;
        lastId = message.id ?? lastId;
        hear(message);
      }
    } catch {
      // Whatever it was, the answer is to connect again.
    }
    if (watching === ours) {
      tellState("lost");
      await new Promise((resume) => setTimeout(resume, pause));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}

function stopWatching() {
  watching?.abort();
  watching = null;
}

// Without a session there are no changes, and asking again would not help.
function leaveOff() {
  stopWatching();
  tellState("signed-out");
}

// Server-sent events of any name: an EventSource would have to know all names beforehand.
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => split(line)));
      if (fields.has("event")) {
        const content = JSON.parse(fields.get("data") ?? "null");
        yield { id: fields.get("id"), name: fields.get("event"), content };
      }
    }
  }
}

function split(line) {
  const colon = line.indexOf(": ");
  return [line.slice(0, colon), line.slice(colon + 2)];
}

function hear({ name, content }) {
  if (name === "hello") {
    tellState("live");
  } else if (name === "signed_out") {
    leaveOff();
    return;
  } else if (content?.event) {
    announce(`${content.event.type} of ${content.event.resources.join(", ")}: ${inWords(name)}`);
  }
  if (showsEvents() && concerns(content)) {
    refreshSoon();
  }
}

// A greeting or a farewell has no scope: after it, anything may be new.
function concerns(content) {
  const about = document.querySelector("[data-about]")?.dataset.about;
  return about === undefined || content?.scope === undefined || content.scope === about;
}

function inWords(action) {
  const words = JSON.parse(document.getElementById("announcer")?.dataset.words ?? "{}");
  return words[action] ?? action;
}

function announce(words) {
  const announcer = document.getElementById("announcer");
  if (announcer !== null) {
    announcer.textContent = words;
  }
}

const STATES = {
  live: "Live",
  lost: "Reconnecting…",
  gone: "What this page shows is no longer there",
  "signed-out": "Signed out",
};

function tellState(state) {
  const shown = document.getElementById("live-state");
  if (shown !== null) {
    shown.dataset.state = state;
    setText(shown, STATES[state]);
  }
  const again = document.getElementById("sign-in-again");
  if (again !== null) {
    again.hidden = state !== "signed-out";
    const { pathname, search } = new URL(ownAddress(), location.href);
    again.href = `/sign-in?next=${encodeURIComponent(pathname + search)}`;
  }
}

// --- begin ---------------------------------------------------------------------------------------

// Browsers keep few connections to one server: a hidden page gives its own back.
function listenToVisibility() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stopWatching();
    } else {
      watch();
    }
  });
  window.addEventListener("pagehide", stopWatching);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) {
      watch();
    }
  });
}

readClock();
drawn = now();
tick();
setInterval(tick, TICK);
setInterval(() => checkClock().catch(() => {}), CLOCK_CHECK);
listenToTimeline();
listenToLinks();
listenToSelection();
listenToForms();
listenToVisibility();
document.documentElement.classList.add("moves");
if (!document.hidden) {
  watch();
}
