/* On a phone, show the reply or the criteria, each where one left it.
   Without this script the two links simply jump. */

const work = document.querySelector(".work");
const links = [...document.querySelectorAll(".switch a")];
const narrow = window.matchMedia("(width < 60rem)");
const places = new Map();

function viewOf(link) {
  return document.querySelector(link.hash)?.matches(".work-criteria") ? "criteria" : "reply";
}

function mark(view) {
  work.dataset.view = view;
  for (const link of links) {
    if (viewOf(link) === view) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function turnTo(view) {
  const before = work.dataset.view;
  if (before === view) {
    window.scrollTo(0, 0);
    return;
  }
  places.set(before, window.scrollY);
  mark(view);
  window.scrollTo(0, places.get(view) ?? 0);
  const pane = work.querySelector(view === "criteria" ? ".work-criteria" : ".work-reply");
  pane?.focus({ preventScroll: true });
}

if (work && links.length === 2) {
  mark("reply");
  for (const link of links) {
    link.addEventListener("click", (event) => {
      if (!narrow.matches) return;
      event.preventDefault();
      turnTo(viewOf(link));
    });
  }
  // A jump to one criterion, from an error or a link, opens the side that holds it.
  document.addEventListener("click", (event) => {
    const anchor = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    if (!anchor || links.includes(anchor) || !narrow.matches || anchor.hash.length < 2) return;
    const target = document.getElementById(decodeURIComponent(anchor.hash.slice(1)));
    if (!target || !work.contains(target)) return;
    mark(target.closest(".work-criteria") ? "criteria" : "reply");
  });
}
