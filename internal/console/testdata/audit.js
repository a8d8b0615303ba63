// What a reader who sees little, or uses no mouse, would miss on this page: a list of faults.
(() => {
  const faults = [];
  const say = (what, x) => faults.push(what + ": " + x.outerHTML.slice(0, 160));
  const seen = (x) => x.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const text = (x) => (x.textContent || "").trim();
  const named = (x) => text(x) || x.getAttribute("aria-label") || x.title || [...x.querySelectorAll("img")].some((i) => i.alt) ||
    (x.getAttribute("aria-labelledby") && document.getElementById(x.getAttribute("aria-labelledby")));
  if (!document.documentElement.lang) faults.push("the page has no language");
  if (!document.title) faults.push("the page has no title");
  if (document.querySelectorAll("h1").length !== 1) faults.push("the page has " + document.querySelectorAll("h1").length + " h1");
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    const own = Number(h.tagName[1]);
    if (h.closest("dialog")) continue;
    if (own > level + 1) say("a heading skips a level", h);
    level = own;
  }
  for (const x of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!(x.labels && [...x.labels].some(text)) && !x.getAttribute("aria-label")) say("a field without a label", x);
  }
  for (const x of document.querySelectorAll("a, button, summary, [role=region], nav, form")) {
    if (["A", "BUTTON", "SUMMARY"].includes(x.tagName) ? !named(x) : !x.getAttribute("aria-label") && !x.getAttribute("aria-labelledby") && x.tagName !== "FORM") say("without a name", x);
    if (x.tagName === "A" && !x.getAttribute("href")) say("a link to nowhere", x);
  }
  for (const x of document.querySelectorAll("svg")) if (!x.getAttribute("role") || !x.getAttribute("aria-label")) say("a picture without a name", x);
  for (const x of document.querySelectorAll("img")) if (x.getAttribute("alt") === null) say("an image without a text", x);
  for (const x of document.querySelectorAll("thead th")) if (!x.scope) say("a column without a scope", x);
  for (const x of document.querySelectorAll("[tabindex]")) if (x.tabIndex > 0) say("its own order of tabs", x);
  for (const x of document.querySelectorAll(".scroll")) if (x.scrollWidth > x.clientWidth && x.tabIndex !== 0) say("keys cannot scroll it", x);
  const ids = new Map();
  for (const x of document.querySelectorAll("[id]")) { if (ids.has(x.id)) say("an id twice", x); ids.set(x.id, x); }
  for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const x of document.querySelectorAll(`[${name}]`)) if (!document.getElementById(x.getAttribute(name))) say("its " + name + " is not there", x);
  }
  const rgba = (c) => { const n = c.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (x) => {
    const node = x.closest("g.node");
    if (node) return rgba(getComputedStyle(node.querySelector("rect")).fill);
    const layers = [];
    for (; x; x = x.parentElement) {
      const c = rgba(getComputedStyle(x).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((b, a) => over(a, b), [255, 255, 255, 1]);
  };
  const told = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const x = n.parentElement;
    if (!n.data.trim() || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(x.tagName.toUpperCase()) || !seen(x) || x.closest(".hidden, .skip")) continue;
    const style = getComputedStyle(x);
    const back = behind(x), front = over(rgba(x.closest("svg") ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)].sort((p, q) => q - p);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize), least = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
    const key = x.className + x.tagName + ratio.toFixed(1);
    if (ratio < least && !told.has(key)) { told.add(key); say(`contrast ${ratio.toFixed(2)} of ${least}`, x); }
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = [...document.querySelectorAll("main *, header *, footer *")].filter((x) => !x.closest(".scroll") && seen(x) && x.getBoundingClientRect().right > innerWidth + 1);
    faults.push("the page is wider than the window: " + document.documentElement.scrollWidth + " of " + innerWidth + " " + wide.slice(0, 3).map((x) => x.outerHTML.slice(0, 80)).join(" | "));
  }
  return faults;
})()
