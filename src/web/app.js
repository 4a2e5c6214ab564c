// Keys, marks, cards and suggestions. Every page works without them.
"use strict";
(() => {
  const input = document.querySelector("input[type=search]");
  const stored = () => { try { return localStorage.getItem("keys"); } catch { return null; } };

  // One switch turns keys off, on the page that lists them.
  const toggle = document.getElementById("keys");
  if (toggle) {
    const show = () => { toggle.textContent = stored() === "off" ? "Turn keys on" : "Turn keys off"; };
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      try { localStorage.setItem("keys", stored() === "off" ? "on" : "off"); } catch { /* not kept */ }
      show();
    });
    show();
  }

  const follow = (link) => { if (link) location.assign(link.getAttribute("href")); };
  const view = (name) => [...document.querySelectorAll(".views a")].find((link) => link.textContent === name);
  const step = (by) => {
    const links = [...document.querySelectorAll("main a[href]")];
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) next.focus();
  };
  const actions = {
    "/": () => input && input.focus(),
    "y": () => follow(document.querySelector("link[rel=canonical]")),
    "f": () => follow(view("file")),
    "o": () => follow(view("outline")),
    "h": () => follow(view("history")),
    "b": () => follow(view("blame")),
    "j": () => step(1),
    "k": () => step(-1),
    "?": () => location.assign("/-/help"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || stored() === "off") return;
    if (event.target instanceof Element && event.target.closest("input, textarea, select")) return;
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });

  // Marks what else on the page means the same as the name with the pointer or the focus.
  const mark = (link) => {
    document.querySelectorAll(".marked").forEach((marked) => marked.classList.remove("marked"));
    const href = link && link.getAttribute("href");
    if (!href) return;
    const same = (other) => other.getAttribute("href") === href;
    [...document.querySelectorAll("a.ref, a.may")].filter(same).forEach((other) => other.classList.add("marked"));
  };

  // Shows the signature and the first words about what the name with the pointer or the focus means.
  const card = document.createElement("div");
  card.className = "card";
  card.id = "card";
  card.hidden = true;
  card.setAttribute("role", "tooltip");
  (document.querySelector("main") || document.body).append(card);
  const answers = new Map();
  let waiting = 0, shown = null;
  const hide = () => {
    clearTimeout(waiting);
    card.hidden = true;
    if (shown) shown.removeAttribute("aria-describedby");
    shown = null;
  };
  const ask = async (href) => {
    const [place, line] = href.split("#L");
    const url = line ? `${place.replace("/-/file/", "/-/at/")}?pos=${line}&format=json` : `${place}&format=json`;
    if (!answers.has(url)) {
      const answer = await fetch(url);
      answers.set(url, answer.ok ? (await answer.json()).results[0] : null);
    }
    return answers.get(url);
  };
  const show = async (link) => {
    const found = await ask(link.getAttribute("href")).catch(() => null);
    if (!found || shown !== link) return;
    const part = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
    const text = (found.doc || "").replace(/^[ \t]*(?:\/{2,}!?|\/\*+!?|\*+\/?|#+|"""|'''|--+)[ \t]?/gm, "");
    const about = text.trim().split(/\n\s*\n/)[0].slice(0, 400);
    card.replaceChildren(part("code", found.signature || found.id), part("p", about), part("p", `${found.path}:${found.start_line}`));
    const box = link.getBoundingClientRect();
    card.style.top = `${box.bottom + scrollY + 4}px`;
    card.style.left = `${Math.max(0, Math.min(box.left + scrollX, document.documentElement.clientWidth - 420))}px`;
    link.setAttribute("aria-describedby", card.id);
    card.hidden = false;
  };
  for (const kind of ["mouseover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const link = event.target instanceof Element && event.target.closest("a.ref, a.may, a.def");
      if (card.contains(event.target) || link === shown && link) return;
      mark(link);
      hide();
      if (!link) return;
      shown = link;
      waiting = setTimeout(show, 300, link);
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Suggests definitions and files, one request at a time, when the typing pauses.
  if (!input) return;
  const list = document.createElement("datalist");
  list.id = "suggestions";
  input.after(list);
  input.setAttribute("list", list.id);
  let timer = 0, asking = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    if (asking) asking.abort();
    const typed = input.value.trim();
    if (typed.length < 2) return list.replaceChildren();
    timer = setTimeout(async () => {
      asking = new AbortController();
      try {
        const query = new URLSearchParams({ q: typed, format: "json" });
        const answer = await fetch(`${input.form.getAttribute("action")}?${query}`, { signal: asking.signal });
        const found = answer.ok ? (await answer.json()).results : [];
        const names = new Set(found.map((one) => one.symbol || one.path).filter(Boolean));
        list.replaceChildren(...[...names].slice(0, 8).map((name) => {
          const option = document.createElement("option");
          option.value = name;
          return option;
        }));
      } catch { /* the next key asks again */ }
    }, 50);
  });
})();
