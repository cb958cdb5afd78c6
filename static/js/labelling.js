/* Each answer is sent when it is given, and says so only after the server has kept it.
   What could not be sent is tried again until it is. Without this script every criterion has a
   Save button. */

const work = document.querySelector("[data-labelling]");
const forms = work ? [...work.querySelectorAll("form[data-criterion]")] : [];
const SOONEST = 1_000;
const LATEST = 30_000;
// The refusals that will not change by asking again.
const FINAL = new Set([400, 404, 405, 409, 413, 422]);
// A session that is over, or cookies that are gone: signing in again helps.
const SIGNED_OUT = new Set([401, 403]);

/* One client per tab: its numbers rise, so that a late request never undoes a newer one. */
function client() {
  let name = sessionStorage.getItem("labelling-client");
  if (!name) {
    const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
    const spare = () => bytes.map((n) => n.toString(16).padStart(2, "0")).join("");
    // Only a secure context has randomUUID.
    name = crypto.randomUUID?.() ?? spare();
    sessionStorage.setItem("labelling-client", name);
  }
  return name;
}

/* Time keeps the numbers apart even where a copied tab shares the name of its client. */
function nextNumber() {
  const before = Number(sessionStorage.getItem("labelling-seq") ?? 0);
  const number = Math.max(before + 1, Date.now());
  sessionStorage.setItem("labelling-seq", String(number));
  return number;
}

function announce(message) {
  document.dispatchEvent(new CustomEvent("announce", { detail: { value: message } }));
}

// What the server has not confirmed: form -> {seq, answer, delay, timer, failed, final}
const unsent = new Map();
let signedOut = false;
let waiting = null;

const open = () => [...unsent.values()].filter((entry) => !entry.final);

function mark(form, state, words) {
  const place = form.querySelector(".saved");
  if (!place) return;
  place.dataset.state = state;
  place.textContent = words;
}

function show() {
  const stuck = [...unsent.values()].filter((entry) => entry.failed).length;
  const place = document.getElementById("unsent");
  if (place) {
    const words = stuck ? `${stuck} not yet sent` : "";
    place.textContent = waiting ? "Going on when all is saved" : words;
    place.classList.toggle("pending", stuck > 0 || waiting !== null);
  }
  const notice = document.getElementById("signed-out");
  if (notice) notice.hidden = !signedOut;
}

function renew(form) {
  window.clearTimeout(unsent.get(form)?.timer);
  unsent.set(form, { delay: 0, failed: false, final: false });
}

function send(form) {
  const entry = unsent.get(form);
  if (!entry || entry.final) return;
  window.clearTimeout(entry.timer);
  window.htmx.trigger(form, "again");
}

function trySoon() {
  for (const [form, entry] of unsent) if (entry.failed) send(form);
}

function failed(form, status) {
  const entry = unsent.get(form);
  const first = !entry.failed;
  entry.failed = true;
  entry.final = FINAL.has(status);
  signedOut = SIGNED_OUT.has(status);
  if (status === 422) {
    // The answer itself says why.
  } else if (entry.final) {
    mark(form, "failed", "Not saved. Please reload the page.");
  } else {
    mark(form, "failed", signedOut ? "Not saved: you are signed out" : "Not saved, trying again");
    entry.delay = Math.min(entry.delay ? entry.delay * 2 : SOONEST, LATEST);
    entry.timer = window.setTimeout(() => send(form), entry.delay);
  }
  if (first) announce(signedOut ? "You are signed out. Answers are not saved." : "An answer is not saved yet.");
  show();
}

function kept(form) {
  window.clearTimeout(unsent.get(form).timer);
  unsent.delete(form);
  signedOut = false;
  // The connection is back, so what waits for its turn goes at once.
  trySoon();
  if (waiting && open().length === 0) {
    const { target, submitter } = waiting;
    waiting = null;
    target.requestSubmit(submitter);
  }
  show();
}

function onConfigure(event) {
  const form = event.detail.elt;
  if (!forms.includes(form)) return;
  if (!unsent.has(form)) renew(form);
  const entry = unsent.get(form);
  const parameters = event.detail.parameters;
  const answer = JSON.stringify([parameters.value, parameters.reason, parameters.comment]);
  // The same answer again keeps its number, so that the server counts it once.
  if (entry.answer !== answer) {
    entry.answer = answer;
    entry.seq = nextNumber();
  }
  parameters.client = client();
  parameters.seq = String(entry.seq);
  if (!entry.failed) mark(form, "pending", "Saving");
}

/* An answer changed while its forerunner was on the way: that reply says nothing about it. */
function isOld(event) {
  const request = event.detail.requestConfig;
  const entry = unsent.get(request?.elt);
  return entry !== undefined && String(entry.seq) !== String(request.parameters.seq);
}

if (forms.length > 0) {
  for (const button of work.querySelectorAll("[data-plain-save]")) button.hidden = true;

  work.addEventListener(
    "change",
    (event) => {
      const form = event.target.closest("form[data-criterion]");
      if (!form) return;
      renew(form);
      mark(form, "pending", "Saving");
      show();
    },
    true,
  );
  work.addEventListener("htmx:configRequest", onConfigure);
  work.addEventListener("htmx:beforeSwap", (event) => {
    if (isOld(event)) event.detail.shouldSwap = false;
  });
  work.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.requestConfig?.elt;
    if (!unsent.has(form) || isOld(event)) return;
    if (event.detail.successful) kept(form);
    else failed(form, event.detail.xhr?.status ?? 0);
  });
  // A swap brings the state back as the server knows it; what is unsent is known here.
  work.addEventListener("htmx:oobAfterSwap", show);

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.matches("[data-after-saving]")) return;
    if (open().length === 0) return;
    event.preventDefault();
    waiting = { target: form, submitter: event.submitter };
    announce("Waiting for your answers to be saved.");
    trySoon();
    show();
  });
  // A link to a folded part opens it.
  for (const link of document.querySelectorAll("a[href='#decline']")) {
    link.addEventListener("click", () => {
      document.getElementById("decline").open = true;
    });
  }
  window.addEventListener("beforeunload", (event) => {
    if (unsent.size > 0) event.preventDefault();
  });
  window.addEventListener("online", trySoon);
  window.addEventListener("focus", trySoon);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) trySoon();
  });
}
