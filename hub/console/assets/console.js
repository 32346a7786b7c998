// Loads the page again after the hub has announced a change, and updates ages. Without this script, a user can reload
// the page.
"use strict";
(() => {
  const main = () => document.getElementById("main");

  // A part that is wider than the page can have the focus, so that the keyboard scrolls it.
  function scrollable() {
    for (const part of document.querySelectorAll(".wide, pre")) {
      if (part.scrollWidth <= part.clientWidth) { part.removeAttribute("tabindex"); continue; }
      const title = part.closest(".card")?.querySelector("h2, h3, summary");
      part.tabIndex = 0;
      part.setAttribute("role", "group");
      part.setAttribute("aria-label", title?.textContent ?? "Scrolls sideways");
    }
  }
  scrollable();
  addEventListener("resize", scrollable);

  // words is the function HumanDuration of Kubernetes, so that ages have the same form as in the hub's HTML.
  function words(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24), y = Math.floor(d / 365);
    const both = (whole, unit, rest, smaller) => whole + unit + (rest ? rest + smaller : "");
    if (s < 120) return s + "s";
    if (m < 10) return both(m, "m", s % 60, "s");
    if (m < 180) return m + "m";
    if (h < 8) return both(h, "h", m % 60, "m");
    if (h < 48) return h + "h";
    if (h < 192) return both(d, "d", h % 24, "h");
    if (y < 2) return d + "d";
    return y < 8 ? both(y, "y", d % 365, "d") : y + "y";
  }

  // Ages grow between loads. They use the hub's clock, because the browser's clock may be wrong.
  let seen = Date.now();
  function grow() {
    const now = Date.parse(main()?.querySelector(".asof time")?.dateTime) + Date.now() - seen;
    if (document.hidden || isNaN(now)) return;
    for (const t of document.querySelectorAll("time.age")) {
      const age = words(now - Date.parse(t.dateTime));
      if (t.textContent !== age) t.textContent = age;
    }
  }
  setInterval(grow, 10000);
  document.addEventListener("visibilitychange", grow);

  const scope = main()?.dataset.scope;
  if (!scope) return;
  const silentFor = 40000; // the hub sends an event at least every 15 s
  const offline = document.getElementById("offline");
  let source = null, reading = false, again = false, heard = Date.now();

  // mark says in the head of the page whether the page updates itself now.
  function mark(live) {
    const head = main()?.querySelector(".asof");
    if (!head) return;
    head.classList.toggle("live", live);
    head.classList.toggle("lost", !live);
    head.firstChild.textContent = live ? "Live, as of " : "As of ";
  }
  const lost = (why = "No connection to the hub.") => {
    mark(false);
    offline.textContent = why + " This page is as of " + new Date(seen).toLocaleTimeString() + ".";
    offline.hidden = false;
  };

  const stops = () => [...main().querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
  // same finds the element of the new content that replaces the element with the focus.
  const same = (was, at) => {
    const like = (e) => e && e.tagName === was.tagName && e.getAttribute("href") === was.getAttribute("href");
    const now = stops();
    return was.id ? document.getElementById(was.id) : like(now[at]) ? now[at] : now.find(like);
  };
  const typing = () => main().contains(document.activeElement) && document.activeElement.matches("input, textarea, select");

  // read replaces the content, and keeps the focus, open details, typed text and the scroll position.
  async function read() {
    if (reading || typing()) { again = true; return; }
    reading = true;
    let pause = 1000; // at least, in milliseconds
    const fail = (why) => { lost(why); again = true; pause = 5000; };
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual", signal: AbortSignal.timeout(60000) });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (answer.status >= 500) { fail(answer.headers.has("Retry-After") ? "The hub is busy." : undefined); return; }
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
      if (typing()) { again = true; return; }
      for (const d of main().querySelectorAll("details[open][id]")) next.querySelector("#" + CSS.escape(d.id))?.setAttribute("open", "");
      const left = [...main().querySelectorAll(".wide")].map((w) => w.scrollLeft);
      const focus = main().contains(document.activeElement) ? document.activeElement : null, at = stops().indexOf(focus);
      main().replaceWith(next);
      seen = Date.now();
      scrollable();
      [...main().querySelectorAll(".wide")].forEach((w, i) => { w.scrollLeft = left[i] ?? 0; });
      if (focus) same(focus, at)?.focus({ preventScroll: true });
      offline.hidden = true;
      mark(source?.readyState === EventSource.OPEN);
    } catch {
      fail();
    } finally {
      // A page that takes long to make is loaded less often. A failed load is repeated.
      setTimeout(() => {
        reading = false;
        if (again && !typing() && !document.hidden) { again = false; read(); }
      }, Math.max(pause, 4 * (performance.now() - began)));
    }
  }
  document.addEventListener("focusout", () => setTimeout(() => { if (again && !typing()) { again = false; read(); } }));

  function connect() {
    source?.close();
    const mine = source = new EventSource("/live?scope=" + encodeURIComponent(scope));
    let first = true;
    heard = Date.now();
    const on = (event, act) => mine.addEventListener(event, (e) => { if (e.data !== undefined) { heard = Date.now(); act(); } });
    on("open", () => { mark(true); if (!offline.hidden || !first) read(); first = false; });
    on("changed", read);
    on("beat", () => {});
    on("ended", () => { mine.close(); location.reload(); });
    mine.onerror = () => { // the browser connects again by itself, except after a refusal of the hub
      lost();
      if (mine.readyState !== EventSource.CLOSED) return;
      read(); // the response says whether the session has ended
      setTimeout(() => { if (mine === source) connect(); }, 30000);
    };
  }
  // A hanging replica does not close the connection, so that silence counts as a loss.
  setInterval(() => {
    if (source?.readyState === EventSource.OPEN && Date.now() - heard > silentFor) { lost(); connect(); }
  }, 5000);

  // A hidden page is not loaded again.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else if (!source) connect();
  });
  if (!document.hidden) connect();
})();
