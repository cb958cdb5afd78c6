/* Send the CSRF token of the moment with every htmx request and every form.
   A new sign-in, in another tab too, rotates the token that a page was rendered with, so the cookie
   is read each time. */

const FIELD = "csrfmiddlewaretoken";

function csrfToken() {
  const cookie = document.cookie.match(/(?:^|;\s*)(?:__Host-|__Secure-)?csrftoken=([^;]+)/);
  return cookie ? decodeURIComponent(cookie[1]) : null;
}

document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb === "get") return;
  const token = csrfToken() ?? document.querySelector(`input[name=${FIELD}]`)?.value ?? "";
  event.detail.headers["X-CSRFToken"] = token;
  // The server reads the header only where the form brings no token of its own.
  delete event.detail.parameters[FIELD];
});

// Before anything else hears of it, as htmx takes the values of a form when it is submitted.
document.addEventListener(
  "submit",
  (event) => {
    const field = event.target.elements?.namedItem(FIELD);
    const token = csrfToken();
    if (field && token) field.value = token;
  },
  true,
);
