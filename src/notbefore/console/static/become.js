// Changing one piece of a page into another, newer one.
//
// What the server sent is the truth, except for what the person in front of it is busy with.

// Changes `old` into `wanted` with as little done as possible: what has the focus keeps it, what
// was typed stays, and a bar that moves is the same bar, so that it can be seen to move.
export function become(old, wanted) {
  if ("kept" in old.dataset || isTypedInto(old) || old.isEqualNode(wanted)) {
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !(name === "open" && old.localName === "details")) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
    }
  }
  const named = new Map();
  for (const child of old.children) {
    if (child.id) {
      named.set(child.id, child);
    }
  }
  let place = old.firstChild;
  for (const child of wanted.childNodes) {
    const same = named.get(child.id) ?? (isAlike(place, child) ? place : null);
    if (same === null || same.nodeName !== child.nodeName) {
      old.insertBefore(document.importNode(child, true), place);
      continue;
    }
    if (same === place) {
      place = place.nextSibling;
    } else {
      old.insertBefore(same, place);
    }
    if (same.nodeType === Node.ELEMENT_NODE) {
      become(same, child);
    } else if (same.data !== child.data) {
      same.data = child.data;
    }
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function isAlike(old, wanted) {
  return old !== null && old.nodeName === wanted.nodeName && !old.id && !wanted.id;
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
