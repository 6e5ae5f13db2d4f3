// Boxes in front of events: how many are ticked, and one that ticks all of them.
//
// The form works without this; it only spares people the ticking, and the counting.

function boxesOf(form) {
  return [...form.elements].filter((element) => element.name === "event" && element.type === "checkbox");
}

function tell(form) {
  const boxes = boxesOf(form);
  const ticked = boxes.filter((box) => box.checked).length;
  const all = form.querySelector("[data-tick-all]");
  all.closest("label").hidden = boxes.length === 0;
  all.checked = ticked > 0 && ticked === boxes.length;
  all.indeterminate = ticked > 0 && ticked < boxes.length;
  const words = ticked === 0 ? "Tick events to" : `${ticked} of ${boxes.length} ticked:`;
  const shown = form.querySelector("[data-ticked]");
  if (shown.textContent !== words) {
    shown.textContent = words;
  }
}

export function listenToSelection() {
  const form = document.querySelector("form[data-selection]");
  if (form === null) {
    return;
  }
  document.addEventListener("change", (event) => {
    if (event.target instanceof Element && event.target.matches("[data-tick-all]")) {
      for (const box of boxesOf(form)) {
        box.checked = event.target.checked;
      }
    }
    tell(form);
  });
  // Events come and go while the page is open.
  const list = document.getElementById("events");
  new MutationObserver(() => tell(form)).observe(list, { childList: true, subtree: true });
  tell(form);
}
