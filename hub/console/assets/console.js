// Reads the page again when the hub says that something has changed. Without this script, a reload does the same.
"use strict";
(() => {
  const main = () => document.getElementById("main");
  const scope = main()?.dataset.scope;
  if (!scope) return;
  const offline = document.getElementById("offline");
  let source = null, reading = false, again = false, seen = new Date();

  const lost = () => {
    offline.textContent = "No connection to the hub. This page is as of " + seen.toLocaleTimeString() + ".";
    offline.hidden = false;
  };

  // read replaces the content, and keeps the focus, open details, typed text and the scroll position.
  async function read() {
    if (reading) { again = true; return; }
    const typing = document.activeElement;
    if (typing && main().contains(typing) && typing.matches("input, textarea, select")) { again = true; return; }
    reading = true;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (!answer.ok) { lost(); return; }
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
      const focus = document.activeElement?.id, open = [...main().querySelectorAll("details[open][id]")].map((d) => d.id);
      for (const id of open) next.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
      const left = [...main().querySelectorAll(".wide")].map((w) => w.scrollLeft);
      main().replaceWith(next);
      [...main().querySelectorAll(".wide")].forEach((w, i) => { w.scrollLeft = left[i] ?? 0; });
      if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
      seen = new Date();
      offline.hidden = true;
    } catch {
      lost();
    } finally {
      // A page that takes long to make is read less often.
      setTimeout(() => {
        reading = false;
        if (again) { again = false; read(); }
      }, Math.max(1000, 4 * (performance.now() - began)));
    }
  }

  function connect() {
    source = new EventSource("/live?scope=" + encodeURIComponent(scope));
    let first = true;
    source.addEventListener("open", () => { if (!offline.hidden || !first) read(); first = false; });
    source.addEventListener("changed", read);
    source.addEventListener("ended", () => { source.close(); location.reload(); });
    source.onerror = () => { // the browser connects again, unless the hub has refused
      lost();
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (!document.hidden) connect(); }, 30000);
    };
  }

  // A page that nobody sees reads nothing.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else if (!source) { connect(); read(); }
  });
  if (!document.hidden) connect();
})();
