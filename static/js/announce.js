/* Say what changed: the server sends HX-Trigger {"announce": "…"} and the live region repeats it. */

const live = document.getElementById("live");

document.addEventListener("announce", (event) => {
  const message = event.detail?.value ?? event.detail?.message;
  if (!live || !message) return;
  // An unchanged text is not read out again, so it is emptied first.
  live.textContent = "";
  window.setTimeout(() => {
    live.textContent = message;
  }, 50);
});
