// Forms are sent once, however often their button is clicked.
//
// When a form is sent again, the browser drops the answer to the first request. That answer may be
// the only page that shows a new secret.

const LONGEST = 10_000; // ms: the form of a request that the reader stopped can be sent again

let underWay = new WeakMap(); // from forms to when they were sent

function isUnderWay(form) {
  return performance.now() - (underWay.get(form) ?? -LONGEST) < LONGEST;
}

export function listenToForms() {
  document.addEventListener("submit", (event) => {
    // Not `form.method`, which may be a field of that name. Forms that only ask may ask again.
    if (event.defaultPrevented || event.target.getAttribute("method") !== "post") {
      return;
    }
    if (isUnderWay(event.target)) {
      event.preventDefault();
    } else {
      underWay.set(event.target, performance.now());
    }
  });
  // A page that the back button brings back was left by the form that it sent.
  window.addEventListener("pageshow", () => {
    underWay = new WeakMap();
  });
}
