/* Show a request that failed in one calm notice.
   What looks after its own failures carries data-own-errors. */

const region = document.getElementById("errors");

const WORDS = {
  0: "The connection was lost. Nothing was changed; please try again.",
  400: "That request could not be read. Please reload the page and try again.",
  401: "You have been signed out. Please sign in again in a new tab; this page keeps what you wrote.",
  403: "You may not do this. If you signed in again, reload the page first.",
  404: "This is no longer here. Someone may have changed it meanwhile.",
  409: "Someone changed this meanwhile. Please reload the page.",
  429: "That was too quick. Please wait a moment and try again.",
  503: "The server is busy. Please try again in a moment.",
};

function words(status) {
  if (WORDS[status]) return WORDS[status];
  if (status >= 500) return "Something went wrong on our side. Nothing was changed; please try again.";
  return "That did not work. Please reload the page and try again.";
}

function show(message) {
  const notice = document.createElement("div");
  notice.className = "notice error";
  const text = document.createElement("p");
  text.textContent = message;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet compact";
  close.textContent = "Close";
  close.addEventListener("click", () => region.replaceChildren());
  notice.append(text, close);
  region.replaceChildren(notice);
}

function report(event) {
  const source = event.detail?.elt ?? event.target;
  if (source instanceof Element && source.closest("[data-own-errors]")) return;
  show(words(event.detail?.xhr?.status ?? 0));
}

if (region) {
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout", "htmx:swapError"]) {
    document.addEventListener(name, report);
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) region.replaceChildren();
  });
}
