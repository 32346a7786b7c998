// Reads the page again when the hub says that something has changed. Without this script, a reload does the same.
"use strict";
(() => {
  const main = () => document.getElementById("main");
  const scope = main()?.dataset.scope;
  if (!scope) return;
  const offline = document.getElementById("offline");
  let source = null, opened = false, reading = false, again = false, seen = new Date();

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
      reading = false;
      if (again) { again = false; setTimeout(read, 1000); }
    }
  }

  function connect() {
    source = new EventSource("/live?scope=" + encodeURIComponent(scope));
    source.addEventListener("open", () => { if (opened) read(); opened = true; });
    source.addEventListener("changed", read);
    source.addEventListener("ended", () => { source.close(); location.reload(); });
    source.onerror = () => { // the browser connects again, unless the hub has refused
      lost();
      if (source.readyState !== EventSource.CLOSED) return;
      read(); // it finds out whether the session has ended
      setTimeout(() => { if (!document.hidden && source?.readyState === EventSource.CLOSED) connect(); }, 30000);
    };
  }

  // A page that nobody sees reads nothing.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else if (!source) connect();
  });
  if (!document.hidden) connect();
})();
