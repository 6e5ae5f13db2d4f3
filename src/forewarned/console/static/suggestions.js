// Names that match what is typed into a field, looked up on every change.
//
// Fields work without this script: they take what is typed. It makes no markup of its own: what it
// shows beneath a field the server has sent.
//
// Marks that it knows:
//   [data-suggest]   a field, and which names it takes: /suggest/{these}
//   [data-many]      of such a field: it takes many names, with spaces or commas between them
//   #suggestions     what the server sends;  [role=option][data-value]: a name in it

const SETTLE = 120; // ms without a key before the server is asked
const BETWEEN = /[\s,;]/;

let field = null; // what the open list belongs to
let asked = null;
let planned = null;

function fieldOf(event) {
  return event.target instanceof Element ? event.target.closest("[data-suggest]") : null;
}

// The name under the caret, with where it begins and ends: all of it in a field for one name.
function wordIn(one) {
  const text = one.value;
  if (!("many" in one.dataset)) {
    return { text: text.trim(), begin: 0, end: text.length };
  }
  let begin = one.selectionStart;
  let end = one.selectionStart;
  while (begin > 0 && !BETWEEN.test(text[begin - 1])) {
    begin -= 1;
  }
  while (end < text.length && !BETWEEN.test(text[end])) {
    end += 1;
  }
  return { text: text.slice(begin, end), begin, end };
}

function options() {
  return [...document.querySelectorAll("#suggestions [role=option]")];
}

function chosen() {
  return document.querySelector('#suggestions [aria-selected="true"]');
}

// --- asking --------------------------------------------------------------------------------------

function look(one, pause) {
  clearTimeout(planned);
  planned = setTimeout(() => ask(one), pause);
}

async function ask(one) {
  asked?.abort();
  const ours = (asked = new AbortController());
  const like = encodeURIComponent(wordIn(one).text);
  try {
    const response = await fetch(`/suggest/${one.dataset.suggest}?like=${like}`, {
      signal: ours.signal,
      cache: "no-store",
    });
    if (!response.ok || response.redirected) {
      close();
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (asked === ours && document.activeElement === one) {
      open(one, page.getElementById("suggestions"));
    }
  } catch {
    // Typing goes on without suggestions.
  }
}

// --- showing -------------------------------------------------------------------------------------

function open(one, found) {
  close();
  if (found === null) {
    return;
  }
  field = one;
  one.after(document.importNode(found, true));
  if (one.getAttribute("role") === "combobox") {
    one.setAttribute("aria-expanded", "true");
  }
  if (options().length > 0) {
    one.setAttribute("aria-controls", "suggestion-list");
  }
  const count = options().length;
  tell(count === 0 ? "No name matches" : `${count} ${count === 1 ? "suggestion" : "suggestions"}, arrow keys to choose`);
}

function close() {
  clearTimeout(planned);
  document.getElementById("suggestions")?.remove();
  for (const name of ["aria-activedescendant", "aria-controls"]) {
    field?.removeAttribute(name);
  }
  if (field?.getAttribute("role") === "combobox") {
    field.setAttribute("aria-expanded", "false");
  }
  field = null;
}

function tell(words) {
  const announcer = document.getElementById("announcer");
  if (announcer !== null) {
    announcer.textContent = words;
  }
}

// --- choosing ------------------------------------------------------------------------------------

function move(step) {
  const all = options();
  if (all.length === 0) {
    return;
  }
  const here = all.indexOf(chosen());
  const next = here < 0 && step < 0 ? all.length - 1 : (here + step + all.length) % all.length;
  all.forEach((option, place) => option.setAttribute("aria-selected", String(place === next)));
  all[next].scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", all[next].id);
}

function take(option) {
  const one = field;
  const { begin, end } = wordIn(one);
  const isMany = "many" in one.dataset;
  const rest = one.value.slice(end);
  const space = isMany && !BETWEEN.test(rest[0] ?? "") ? " " : "";
  one.value = one.value.slice(0, begin) + option.dataset.value + space + rest;
  const caret = begin + option.dataset.value.length + space.length;
  close();
  one.focus();
  one.setSelectionRange(caret, caret);
}

// --- listening -----------------------------------------------------------------------------------

// Only now does the field do more than one that is typed into; a text area may not be called so.
document.addEventListener("focusin", (event) => {
  const one = fieldOf(event);
  if (one !== null) {
    one.setAttribute("aria-autocomplete", "list");
    if (one.localName === "input") {
      one.setAttribute("role", "combobox");
      one.setAttribute("aria-expanded", "false");
    }
  }
});

document.addEventListener("input", (event) => {
  const one = fieldOf(event);
  if (one === null) {
    return;
  }
  if (wordIn(one).text === "") {
    asked?.abort();
    close();
  } else {
    look(one, SETTLE);
  }
});

document.addEventListener("keydown", (event) => {
  const one = fieldOf(event);
  if (one === null || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const isOpen = field === one;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (isOpen && options().length > 0) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "ArrowDown" && one.localName === "input") {
      event.preventDefault();
      look(one, 0);
    }
  } else if (event.key === "Enter" && isOpen && chosen() !== null) {
    event.preventDefault();
    take(chosen());
  } else if (event.key === "Escape" && isOpen) {
    event.preventDefault();
    close();
  }
});

document.addEventListener("focusout", (event) => {
  if (fieldOf(event) !== null) {
    asked?.abort();
    close();
  }
});

// Before the field would lose the focus, and the list with it.
document.addEventListener("pointerdown", (event) => {
  const inside = event.target instanceof Element ? event.target.closest("#suggestions") : null;
  if (inside !== null && event.button === 0) {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option !== null) {
      take(option);
    }
  }
});
