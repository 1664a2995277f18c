// The search over index.js, which has the text of every section. It is loaded as a script when somebody begins to search,
// because a page that was opened from a file may fetch nothing.
"use strict";

(() => {
  const find = document.getElementById("find");
  const box = document.getElementById("search");
  const hits = document.getElementById("hits");
  const told = document.getElementById("told");
  const up = document.body.dataset.up;
  const lang = document.documentElement.lang;
  const most = 30;

  find.hidden = false;
  const nav = document.getElementById("contents");
  const here = nav.querySelector("[aria-current]");
  if (here) nav.scrollTop = here.offsetTop - nav.clientHeight / 3;
  nav.addEventListener("click", (event) => {
    if (event.target.closest("a") && nav.matches(":popover-open")) nav.hidePopover();
  });

  // load asks for the index, once.
  function load() {
    if (load.asked) return;
    load.asked = true;
    const script = document.createElement("script");
    script.src = up + "index.js";
    script.addEventListener("load", show);
    document.head.append(script);
  }

  // score says how well a section fits: every word must occur. Chinese has no spaces, so words may be parts of others.
  function score(page, section, words) {
    let sum = page.lang === lang ? 3 : 0;
    const heading = section.title.toLowerCase();
    const title = page.title.toLowerCase();
    const text = section.text.toLowerCase();
    for (const word of words) {
      const at = text.indexOf(word);
      if (heading.includes(word)) sum += heading === word ? 30 : 15;
      else if (title.includes(word)) sum += at >= 0 ? 9 : 6;
      else if (at >= 0) sum += 3;
      else return 0;
      if (at >= 0) sum += Math.min(text.split(word).length, 6) / 3;
    }
    return sum;
  }

  function search(words) {
    const found = [];
    for (const page of window.documents) {
      for (const section of page.sections) {
        const points = score(page, section, words);
        if (points > 0) found.push({ page, section, points });
      }
    }
    return found.sort((a, b) => b.points - a.points);
  }

  // marked returns an excerpt around the longest word that the text has, with all words marked.
  function marked(text, words) {
    const lower = text.toLowerCase();
    const first = words.toSorted((a, b) => b.length - a.length).map((w) => lower.indexOf(w)).find((at) => at >= 0) ?? 0;
    const start = Math.max(0, first - 50);
    const end = start + 180;
    let rest = (start > 0 ? "…" : "") + text.slice(start, end).trim() + (end < text.length ? "…" : "");
    const small = document.createElement("small");
    while (rest) {
      const places = words.map((w) => [rest.toLowerCase().indexOf(w), w.length]).filter(([at]) => at >= 0);
      const [at, length] = places.sort((a, b) => a[0] - b[0])[0] || [rest.length, 0];
      small.append(rest.slice(0, at));
      if (length > 0) {
        const mark = document.createElement("mark");
        mark.textContent = rest.slice(at, at + length);
        small.append(mark);
      }
      rest = rest.slice(at + length);
    }
    return small;
  }

  function hit({ page, section }, words) {
    const link = document.createElement("a");
    link.href = up + page.out + (section.anchor ? "#" + encodeURIComponent(section.anchor) : "");
    link.lang = page.lang;
    const title = document.createElement("b");
    title.textContent = section.title;
    link.append(title);
    if (section.title !== page.title) link.append(" · " + page.title);
    link.append(marked(section.text, words));
    const entry = document.createElement("li");
    entry.append(link);
    return entry;
  }

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0 || !window.documents) {
      close();
      return;
    }
    const found = search(words);
    hits.replaceChildren(...found.slice(0, most).map((f) => hit(f, words)));
    told.textContent = found.length ? told.dataset.some + " " + found.length : told.dataset.none;
    if (found.length === 0) {
      const nothing = document.createElement("li");
      nothing.className = "nothing";
      nothing.textContent = told.dataset.none;
      hits.append(nothing);
    }
    hits.hidden = false;
  }

  function close() {
    hits.hidden = true;
    told.textContent = "";
  }

  // move puts the focus on the next hit, or on the one before; before the first is the box.
  function move(by) {
    const places = [box, ...hits.querySelectorAll("a")];
    const at = places.indexOf(document.activeElement);
    places[Math.min(Math.max(at + by, 0), places.length - 1)].focus();
  }

  box.addEventListener("focus", load);
  box.addEventListener("input", show);
  box.addEventListener("focus", show);
  hits.addEventListener("click", close);
  find.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = hits.hidden ? null : hits.querySelector("a");
    if (first) first.click();
  });
  find.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      box.focus();
      close();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === box) return;
    event.preventDefault();
    box.focus();
  });
  for (const kind of ["pointerdown", "focusin"]) {
    document.addEventListener(kind, (event) => {
      if (!find.contains(event.target)) close();
    });
  }
})();
