/* Send the CSRF token of the moment with every htmx request.
   A new sign-in rotates the token that a page was rendered with, so the cookie is read each time. */

function csrfToken() {
  const cookie = document.cookie.match(/(?:^|;\s*)(?:__Host-|__Secure-)?csrftoken=([^;]+)/);
  if (cookie) return decodeURIComponent(cookie[1]);
  return document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";
}

document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb === "get") return;
  event.detail.headers["X-CSRFToken"] = csrfToken();
});
