package browser

import (
	"fmt"
	"strings"
)

// Barrier is an accessibility fault that axe-core has found on a page.
type Barrier struct {
	ID     string `json:"id"`
	Impact string `json:"impact"` // minor, moderate, serious or critical
	Help   string `json:"help"`
	// Elements has the HTML of each faulty element, with the reason.
	Elements []string `json:"elements"`
}

func (b Barrier) String() string {
	return fmt.Sprintf("%s: %s: %s\n    %s", b.Impact, b.ID, b.Help, strings.Join(b.Elements, "\n    "))
}

// barriers is a script that checks a page with axe-core: all rules of WCAG 2.2 A and AA, and the best practices.
const barriers = `(async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map((v) => ({
    id: v.id, impact: v.impact, help: v.help,
    elements: v.nodes.map((n) => n.html.slice(0, 200) + " " + n.failureSummary.replace(/\s+/g, " ")),
  }));
})()`

// Barriers returns all faults of the open page that axe-core finds.
func (t *Tab) Barriers() []Barrier {
	t.Helper()
	if !Eval[bool](t, `"axe" in window`) {
		Eval[bool](t, t.axe+"\n;true")
	}
	return Eval[[]Barrier](t, barriers)
}

// ScrollsSideways reports whether the whole page is wider than its window.
func (t *Tab) ScrollsSideways() bool {
	t.Helper()
	return Eval[bool](t, `document.documentElement.scrollWidth > document.documentElement.clientWidth`)
}

// stop is an element that a user must be able to reach with the key Tab.
type stop struct {
	Key string `json:"key"`
	// Outlined is true if the element visibly has the focus.
	Outlined bool `json:"outlined"`
	// InView is true if a part of the element is visible in the window.
	InView bool `json:"inView"`
}

// These scripts return the elements that the key Tab must reach. An open page may replace its elements at any time, so
// that each element is identified by a key.
const (
	keyOf = `const key = (e) => e.tagName.toLowerCase() + " " + (e.id || e.getAttribute("href") || e.ariaLabel || e.name || e.textContent.trim().slice(0, 60));`
	all   = `(() => { ` + keyOf + `
  const found = document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]:not([tabindex="-1"])');
  return [...found].filter((e) => !e.disabled && e.checkVisibility({visibilityProperty: true})).map(key);
})()`
	focused = `(() => { ` + keyOf + `
  const e = document.activeElement;
  if (!e || e === document.body) return {key: ""};
  const s = getComputedStyle(e), r = e.getBoundingClientRect();
  return {
    key: key(e), outlined: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2,
    inView: r.width > 0 && r.height > 0 && r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth,
  };
})()`
)

// Unreached presses Tab once for each link and control of the page. It returns the links and controls that never got
// the focus, and those that did not show the focus.
func (t *Tab) Unreached() (faults []string) {
	t.Helper()
	left := map[string]bool{}
	for _, key := range Eval[[]string](t, all) {
		left[key] = true
	}
	if len(left) == 0 {
		return []string{"the page has no link and no control"}
	}
	Eval[bool](t, `document.activeElement.blur() || true`)
	for range 2*len(left) + 10 {
		t.Press("\t", "")
		at := Eval[stop](t, focused)
		if at.Key == "" {
			continue // the browser's own controls have the focus
		}
		if left[at.Key] && !at.Outlined {
			faults = append(faults, at.Key+" has the focus, and does not show it")
		}
		if left[at.Key] && !at.InView {
			faults = append(faults, at.Key+" has the focus outside the window")
		}
		delete(left, at.Key)
		if len(left) == 0 {
			return faults
		}
	}
	for key := range left {
		faults = append(faults, key+" is not reached by Tab")
	}
	return faults
}
