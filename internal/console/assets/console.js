// What a page does beyond links and forms: it follows the space, and takes keys.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const here = () => location.pathname + location.search;

// Parts that are counted only for who looks: each is read once, and again when it is a while old.
const loaded = new Map();

async function load(part) {
  const page = part.dataset.load;
  const known = loaded.get(page);
  if (known) part.innerHTML = known.html;
  if (known && Date.now() - known.at < 15000) return;
  loaded.set(page, {at: Date.now(), html: known ? known.html : part.innerHTML});
  try {
    const answer = await fetch(page);
    if (!answer.ok) throw new Error(answer.statusText);
    const html = await answer.text();
    loaded.set(page, {at: Date.now(), html});
    const now = main.querySelector(`[data-load="${CSS.escape(page)}"]`);
    if (now) now.innerHTML = html;
  } catch (problem) {
    part.textContent = "It could not be counted: " + problem.message;
  }
}

function loadAll() { main.querySelectorAll("[data-load]").forEach(load); }

// touched says that somebody is filling a form of the page, which must not change under the hand.
function touched() {
  const at = document.activeElement;
  if (at && main.contains(at) && at.matches("input:not([type=checkbox]):not([type=range]), select, textarea")) return true;
  return [...main.querySelectorAll("input, textarea, select")].some((x) =>
    x.type === "checkbox" ? x.checked !== x.defaultChecked : x.tagName === "SELECT" ? ![...x.options].every((o) => o.selected === o.defaultSelected || !x.value) : x.value !== x.defaultValue);
}

// place is a path to an element that finds the same one in the next version of the page.
function place(x) {
  if (x.id) return "#" + CSS.escape(x.id);
  const path = [];
  for (; x && x !== main && !x.id; x = x.parentElement) path.unshift(`${x.tagName.toLowerCase()}:nth-child(${[...x.parentElement.children].indexOf(x) + 1})`);
  return (x && x.id ? "#" + CSS.escape(x.id) : "") + " > " + path.join(" > ");
}

let zoomed = 1;

// replace shows a new version of the page, with what is open, scrolled and focused as it was.
function replace(html) {
  if (touched()) return;
  const open = [...main.querySelectorAll("details[open]")].map(place);
  const scrolled = [...main.querySelectorAll(".scroll")].filter((x) => x.scrollLeft || x.scrollTop).map((x) => [place(x), x.scrollLeft, x.scrollTop]);
  const focus = main.contains(document.activeElement) && document.activeElement !== main ? place(document.activeElement) : "";
  main.innerHTML = html;
  for (const x of open) { const d = main.querySelector(x); if (d && d.tagName === "DETAILS") d.open = true; }
  for (const [x, left, top] of scrolled) { const s = main.querySelector(x); if (s) s.scrollTo(left, top); }
  const at = focus && main.querySelector(focus);
  if (at) at.focus({preventScroll: true});
  zoom(1);
  loadAll();
}

// whole reads a page with what it left out because that takes a while. A page that is followed gets
// it with its stream.
async function whole() {
  const part = main.querySelector("[data-whole]");
  if (!part) return;
  part.setAttribute("aria-busy", "true");
  part.prepend("It is being read. ");
  if ("live" in document.body.dataset) return;
  try {
    const answer = await fetch(part.dataset.whole);
    if (!answer.ok) throw new Error(answer.statusText);
    replace(await answer.text());
  } catch (problem) {
    part.textContent = "It could not be read: " + problem.message;
  }
}

// follow keeps a stream while somebody can see the page: a browser has six connections to a host,
// and pages in other tabs would take them all.
function follow() {
  let stream = null;
  let over = false; // the page does not change any more, or has become too large
  const open = () => {
    if (stream || over || document.hidden) return;
    stream = new EventSource("/live?page=" + encodeURIComponent(here()));
    stream.addEventListener("open", () => { live.textContent = "Follows the space"; });
    stream.addEventListener("error", () => { live.textContent = "Not connected: this page may be old"; });
    stream.addEventListener("page", (e) => {
      replace(JSON.parse(e.data));
      live.textContent = "Updated " + new Date().toISOString().slice(11, 19);
    });
    stream.addEventListener("over", (e) => {
      over = true;
      live.textContent = JSON.parse(e.data);
      close();
    });
  };
  const close = () => { if (stream) stream.close(); stream = null; };
  addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
  open();
}

function zoom(by) {
  zoomed = Math.min(4, Math.max(0.25, zoomed * by));
  for (const svg of main.querySelectorAll("svg.graph")) {
    const box = svg.viewBox.baseVal;
    svg.setAttribute("width", box.width * zoomed);
    svg.setAttribute("height", box.height * zoomed);
  }
}

// fit makes a graph that is too wide smaller, as far as its texts can be read, and shows what somebody
// would look for in it first.
function fit() {
  for (const svg of main.querySelectorAll("svg.graph")) {
    const box = svg.closest(".scroll");
    zoomed = 1;
    zoom(1);
    zoom(Math.min(1, Math.max(0.7, box.clientWidth / svg.viewBox.baseVal.width)));
    const node = ["failed", "stuck", "abandoned", "running", "waiting"].map((s) => svg.querySelector(".n-" + s)).find(Boolean) || svg.querySelector(".node");
    if (!node) continue;
    const at = node.getBoundingClientRect(), of = box.getBoundingClientRect();
    box.scrollTo(box.scrollLeft + at.left - of.left - (of.width - at.width) / 2, box.scrollTop + at.top - of.top - (of.height - at.height) / 2);
  }
}

function rows(step) {
  const all = [...main.querySelectorAll("table.list tbody tr")].map((r) => r.querySelector("a.row, a, summary")).filter(Boolean);
  if (!all.length) return;
  const at = all.findIndex((x) => x.closest("tr").contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  next.focus();
}

// copy copies a command. A browser gives no clipboard to a page without TLS on another host: there the
// command is selected instead.
async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

const press = (selector) => { const x = main.querySelector(selector); if (x) x.click(); };
const help = document.getElementById("keys");
let afterG = 0;

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || e.target.closest("input, textarea, select, dialog")) return;
  if (Date.now() - afterG < 1500) {
    afterG = 0;
    const to = document.querySelector(`[data-go="${CSS.escape(e.key)}"]`);
    if (to) { e.preventDefault(); location.assign(to.href); return; }
  }
  switch (e.key) {
  case "/": document.getElementById("jump").focus(); break;
  case "g": afterG = Date.now(); break;
  case "j": rows(1); break;
  case "k": rows(-1); break;
  case "n": press("[data-next]"); break;
  case "p": press("[data-first]"); break;
  case "[": press("[data-back]"); break;
  case "]": press("[data-forth]"); break;
  case "+": zoom(1.25); break;
  case "-": zoom(0.8); break;
  case "?": help.showModal(); break;
  default: return;
  }
  e.preventDefault();
});

addEventListener("click", (e) => {
  const x = e.target.closest("[data-zoom], [data-all], [data-select], [data-copy], #help");
  if (!x) return;
  if (x.id === "help") help.showModal();
  if (x.dataset.copy) copy(x);
  if (x.dataset.zoom) zoom(Number(x.dataset.zoom));
  if (x.dataset.all) for (const c of x.form.elements[x.dataset.all]?.length ? x.form.elements[x.dataset.all] : [x.form.elements[x.dataset.all]]) if (!c.disabled) c.checked = true;
  if (x.dataset.select) { // an activity of the graph: the rest of the address stays
    e.preventDefault();
    const page = new URL(location.href);
    page.searchParams.set("activity", new URL(x.href.baseVal, location.href).searchParams.get("activity"));
    page.hash = location.pathname.startsWith("/jobs/") ? "h-parts" : "";
    location.assign(page);
  }
});

addEventListener("click", (e) => { // a field is required by one button of its form, not by the others
  const x = e.target.closest("button[name=verdict]");
  for (const f of x?.form.querySelectorAll("textarea") ?? []) f.required = f.name === x.dataset.needs;
}, true);
addEventListener("resize", fit);
addEventListener("input", (e) => { if (e.target.id === "at") document.getElementById("at-is").textContent = e.target.value; });
addEventListener("change", (e) => { if (e.target.id === "at") e.target.form.requestSubmit(); });

document.documentElement.classList.add("scripted");
loadAll();
fit();
whole();
if ("live" in document.body.dataset) follow();
