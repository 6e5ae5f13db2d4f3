// Changing one piece of a page into another, newer one.
//
// What the server sent is the truth, except for what the reader is busy with.

// Changes `old` into `wanted` with as little done as possible: what has the focus keeps it, what
// was typed stays, and a bar that moves is the same bar, so that it can be seen to move.
export function morph(old, wanted) {
  if ("kept" in old.dataset || isTypedInto(old) || old.isEqualNode(wanted)) {
    return;
  }
  morphAttributes(old, wanted);
  const named = new Map();
  for (const child of old.children) {
    if (child.id) {
      named.set(child.id, child);
    }
  }
  const needs = needsOf(wanted);
  let place = old.firstChild;
  for (const [index, child] of [...wanted.childNodes].entries()) {
    const same = named.get(child.id) ?? findAlike(place, child, index, needs);
    if (same === null || same.nodeName !== child.nodeName) {
      old.insertBefore(document.importNode(child, true), place);
      continue;
    }
    place = bringNext(same, place, index, needs);
    if (same.nodeType === Node.ELEMENT_NODE) {
      morph(same, child);
    } else if (same.data !== child.data) {
      same.data = child.data;
    }
  }
  while (place !== null) {
    place = removed(place);
  }
}

function morphAttributes(old, wanted) {
  // Whether details are open is up to the reader.
  const isKept = (name) => name === "open" && old.localName === "details";
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !isKept(name)) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value && !isKept(name)) {
      old.setAttribute(name, value);
    }
  }
}

// Up to which of the wanted children something like it is needed, by id or else by its name.
function needsOf(wanted) {
  const needs = new Map();
  for (const [index, child] of [...wanted.childNodes].entries()) {
    needs.set(keyOf(child), index);
  }
  return needs;
}

function keyOf(node) {
  return node.id ? `#${node.id}` : node.nodeName;
}

function isNeeded(node, index, needs) {
  return node.nodeType === Node.ELEMENT_NODE && (needs.get(keyOf(node)) ?? -1) >= index;
}

// The next one like it, if nothing that is still needed stands in between: except that whatever
// the reader is busy with is worth more than that.
function findAlike(place, child, index, needs) {
  if (child.nodeType !== Node.ELEMENT_NODE) {
    return isAlike(place, child) ? place : null;
  }
  let isFree = true;
  for (let node = place; node !== null; node = node.nextSibling) {
    if (isAlike(node, child) && (isFree || isBusy(node))) {
      return node;
    }
    isFree = isFree && !isNeeded(node, index, needs);
  }
  return null;
}

// Makes `same` the next one, and returns what follows it. Moving would take the focus from whatever
// is inside, and with it what is being typed: what stands in between goes out of the way, if it can.
function bringNext(same, place, index, needs) {
  const mustStay = place !== same && isBusy(same);
  while (place !== same && (mustStay || !isNeeded(place, index, needs))) {
    if (isNeeded(place, index, needs)) {
      const next = place.nextSibling;
      same.after(place);
      place = next;
    } else {
      place = removed(place);
    }
  }
  if (place === same) {
    return same.nextSibling;
  }
  same.parentNode.insertBefore(same, place);
  return place;
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function isAlike(old, wanted) {
  return old !== null && old.nodeName === wanted.nodeName && !old.id && !wanted.id;
}

function isBusy(node) {
  return (
    node.contains(document.activeElement) ||
    [...node.querySelectorAll("input, textarea")].some(isTypedInto)
  );
}

function isTypedInto(element) {
  switch (element.localName) {
    case "input":
      return (
        element === document.activeElement ||
        element.value !== element.defaultValue ||
        element.checked !== element.defaultChecked
      );
    case "textarea":
      return element === document.activeElement || element.value !== element.defaultValue;
    case "select":
      return element === document.activeElement;
    default:
      return false;
  }
}
