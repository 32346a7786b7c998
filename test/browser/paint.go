package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/chromedp/chromedp"
)

// FirstPaints signs a user in to the console at an origin. It then visits the pages with these paths in turn. It
// returns, by path, the time until the first contentful paint of each visit, see https://www.w3.org/TR/paint-timing/.
func (b *Browser) FirstPaints(ctx context.Context, origin, token string, paths []string, visits int) (map[string][]time.Duration, error) {
	tab, closeTab := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	defer closeTab()
	defer context.AfterFunc(ctx, closeTab)()
	if err := chromedp.Do(tab); err != nil { // without a timeout, whose end would close the tab
		return nil, fmt.Errorf("opening a page: %w", err)
	}
	signedIn := func(ctx context.Context) error {
		err := chromedp.Do(ctx, chromedp.Navigate(origin+"/signin"), chromedp.SetValue(chromedp.CSS("#token"), token), chromedp.Submit(chromedp.CSS("#token")))
		if err != nil {
			return err
		}
		_, err = awaited(ctx, `Number(location.pathname === "/")`)
		return err
	}
	if err := within(tab, signedIn); err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	out := map[string][]time.Duration{}
	for range visits {
		for _, path := range paths {
			err := within(tab, func(ctx context.Context) error {
				if err := chromedp.Do(ctx, chromedp.Navigate(origin+path)); err != nil {
					return err
				}
				milliseconds, err := awaited(ctx, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`)
				if err != nil {
					return err
				}
				if status, err := awaited(ctx, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusOK {
					return fmt.Errorf("the answer has the status %v: %w", status, err)
				}
				out[path] = append(out[path], time.Duration(milliseconds*float64(time.Millisecond)))
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("visiting %s: %w", path, err)
			}
		}
	}
	return out, nil
}

func within(tab context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(tab, answerWithin)
	defer cancel()
	return do(ctx)
}

// awaited waits until an expression in the page is a number above 0, and returns it.
func awaited(ctx context.Context, expression string) (float64, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		value, err := chromedp.Run(ctx, chromedp.Evaluate[float64](expression)) // fails while no page is loaded
		if value > 0 {
			return value, nil
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
