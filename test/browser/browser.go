// Package browser opens the console's pages in Chromium, for tests. Each Tab has its own profile, so tabs do not share
// cookies.
//
// HANSE_BROWSER is the path of Chromium. HANSE_AXE is the path of axe-core, which checks accessibility. hack/browser.sh
// installs both. If one of them is missing, a test is skipped, or fails if HANSE_REAL_BROWSER is "require".
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// answerWithin is the timeout of an action in a page. The timeout is long because machines may be slow.
const answerWithin = time.Minute

// Needed skips a test if the machine has no browser or no axe-core. It fails the test instead if HANSE_REAL_BROWSER is
// "require".
func Needed(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HANSE_BROWSER", "HANSE_AXE"} {
		if os.Getenv(name) != "" {
			continue
		}
		missing := name + " is not set: hack/browser.sh says which program is missing"
		if os.Getenv("HANSE_REAL_BROWSER") == "require" {
			t.Fatal("HANSE_REAL_BROWSER is require, and " + missing)
		}
		t.Skip(missing)
	}
}

// Browser is a running Chromium in headless mode.
type Browser struct {
	ctx context.Context
	axe string
}

// Start starts the browser. It runs until ctx ends or Stop is called.
func Start(ctx context.Context) (*Browser, error) {
	axe, err := os.ReadFile(os.Getenv("HANSE_AXE"))
	if err != nil {
		return nil, fmt.Errorf("reading HANSE_AXE: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("HANSE_BROWSER")), chromedp.DisableGPU)
	allocator, _ := chromedp.NewExecAllocator(ctx, options...)
	tab, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(tab); err != nil {
		return nil, fmt.Errorf("starting %s: %w", os.Getenv("HANSE_BROWSER"), err)
	}
	return &Browser{ctx: tab, axe: string(axe)}, nil
}

// Stop stops the browser.
func (b *Browser) Stop() error {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	return chromedp.Cancel(ctx)
}

// Tab is an open page. Its methods fail the test on an error.
type Tab struct {
	*testing.T
	ctx context.Context
	axe string
	log *log
}

// log has the recorded events of a page.
type log struct {
	mu       sync.Mutex
	faults   []string // errors of scripts that no handler caught
	requests []string // URLs of the requests
}

// In returns the same tab for use in a subtest.
func (t *Tab) In(sub *testing.T) *Tab { //nolint:thelper // t is the receiver
	return &Tab{T: sub, ctx: t.ctx, axe: t.axe, log: t.log}
}

// noted is a script that runs in every page. It records the requests and scripts that the page's
// Content-Security-Policy refuses.
const noted = `window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => window.refused.push(e.effectiveDirective + " " + e.blockedURI));`

// Open opens an empty tab of 1280 x 800 pixels, which is closed when the test ends. The test fails if a script in the
// tab fails.
func (b *Browser) Open(t *testing.T) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	tab := &Tab{T: t, ctx: ctx, axe: b.axe, log: &log{}}
	t.Cleanup(func() {
		cancel()
		tab.log.mu.Lock()
		defer tab.log.mu.Unlock()
		for _, fault := range tab.log.faults {
			t.Errorf("a script of a page failed: %s", fault)
		}
	})
	tab.must("opening a page", chromedp.Do(ctx))
	tab.must("listening to a page", chromedp.Listen(ctx, tab.log.note))
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noted})
	tab.must("adding a script to a page", err)
	tab.Resize(1280, 800)
	return tab
}

func (l *log) note(event any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		l.requests = append(l.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		fault := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += " " + e.ExceptionDetails.Exception.Description
		}
		l.faults = append(l.faults, fault)
	}
}

func (t *Tab) must(action string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
}

func (t *Tab) do(action string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, answerWithin)
	defer cancel()
	t.must(action, chromedp.Do(ctx, steps...))
}

// Visit opens an address in the tab, and waits until the page is loaded.
func (t *Tab) Visit(address string) {
	t.Helper()
	t.do("visiting "+address, chromedp.Navigate(address))
}

// SignIn signs a user in to the console at an origin such as http://127.0.0.1:8445.
func (t *Tab) SignIn(origin, token string) {
	t.Helper()
	t.Visit(origin + "/signin")
	t.do("typing the token", chromedp.SetValue(chromedp.CSS("#token"), token))
	t.Press("\r", "#token")
	t.Wait("the sign-in ends", `location.pathname === "/" && document.readyState === "complete"`)
}

// Press sends key strokes to the element that matches a selector. If the selector is empty, it sends them to the
// element that has the focus.
func (t *Tab) Press(keys, selector string) {
	t.Helper()
	if selector != "" {
		t.do("focusing "+selector, chromedp.Focus(chromedp.CSS(selector)))
	}
	t.do("pressing keys", chromedp.KeyEvent(keys))
}

// Eval returns the value of a JavaScript expression in the page. If the value is a promise, Eval waits for its result.
func Eval[V any](t *Tab, expression string) V {
	t.Helper()
	value, err := try[V](t, expression)
	t.must("evaluating "+first(expression), err)
	return value
}

func try[V any](t *Tab, expression string) (V, error) {
	ctx, cancel := context.WithTimeout(t.ctx, answerWithin)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
}

// first returns the first line of a long script.
func first(script string) string {
	if line, _, more := strings.Cut(script, "\n"); more {
		return line + " ..."
	}
	return script
}

// Wait waits for at most a minute until a JavaScript expression is true in the page.
func (t *Tab) Wait(until, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, answerWithin)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// The evaluation fails while the browser loads another page.
		is, err := try[bool](t, "!!("+expression+")")
		if is {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := try[string](t, `document.body.innerText`)
			t.Fatalf("waiting until %s: %v: the page shows\n%s", until, errors.Join(context.Cause(ctx), err), text)
		case <-tick.C:
		}
	}
}

// Text returns the visible text of the page.
func (t *Tab) Text() string {
	t.Helper()
	return Eval[string](t, `document.body.innerText`)
}

// Resize sets the size of the page, in CSS pixels.
func (t *Tab) Resize(width, height int64) {
	t.Helper()
	t.do("resizing a page", chromedp.EmulateViewport(width, height))
}

// Prefer sets the colour scheme that the user prefers: light or dark.
func (t *Tab) Prefer(scheme string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, answerWithin)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	t.must("preferring the colour scheme "+scheme, err)
}

// Screenshot returns a picture of the visible part of the page, as PNG.
func (t *Tab) Screenshot() []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, answerWithin)
	defer cancel()
	image, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	t.must("taking a screenshot", err)
	return image
}

// Refused returns the requests and scripts that the Content-Security-Policy of the open page has blocked.
func (t *Tab) Refused() []string {
	t.Helper()
	return Eval[[]string](t, `window.refused`)
}

// Elsewhere returns the addresses of all requests so far to origins other than the given one.
func (t *Tab) Elsewhere(origin string) (addresses []string) {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	for _, address := range t.log.requests {
		if !strings.HasPrefix(address, origin+"/") && !strings.HasPrefix(address, "data:") {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
