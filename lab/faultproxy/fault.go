package faultproxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Mode is a kind of fault.
type Mode string

// The kinds of faults (modes), in the order of the help text.
const (
	None      Mode = "none"
	Delay     Mode = "delay"
	Blackhole Mode = "blackhole"
	Drop      Mode = "drop"
	Reset     Mode = "reset"
	Status    Mode = "status"
	HangWatch Mode = "hang-watch"
	HangList  Mode = "hang-list"
)

// Fault is the way in which a proxy misbehaves until another fault is set.
type Fault struct {
	Mode Mode `json:"mode"`
	// Wait is the delay of each request in the mode delay, or the time between resets of all connections in the mode
	// reset.
	Wait time.Duration `json:"wait,omitempty"`
	// Requests is a number N for the mode reset: at every Nth request, the proxy resets all connections.
	Requests int `json:"requests,omitempty"`
	// Percent is the share of requests that the proxy drops in the mode drop, or to which it responds with Code in the
	// mode status. The proxy selects these requests at random.
	Percent int `json:"percent,omitempty"`
	// Code is the HTTP status of the proxy's own response in the mode status.
	Code int `json:"code,omitempty"`
	// RetryAfter is the Retry-After header of the proxy's own response in the mode status. The header has whole seconds.
	// With 0, the response has no such header.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Resource is the resource whose lists hang in the mode hang-list. It is the plural name, or plural.group. If it is
	// empty, all lists hang.
	Resource string `json:"resource,omitempty"`
}

// Options are the flags of `lab fault`.
type Options struct {
	Percent    int
	RetryAfter time.Duration
}

// Parse reads a fault from words such as "delay", "5s".
func Parse(words []string, opts Options) (Fault, error) {
	if len(words) == 0 {
		return Fault{}, fmt.Errorf("a fault needs a mode")
	}
	f := Fault{Mode: Mode(words[0])}
	args := words[1:]
	least, most := 0, 0
	switch f.Mode {
	case Delay, Drop, Status:
		least, most = 1, 1
	case Reset, HangList:
		most = 1
	case None, Blackhole, HangWatch:
	default:
		return Fault{}, fmt.Errorf("fault mode %q is unknown; known: none, delay, blackhole, drop, reset, status, hang-watch, hang-list", words[0])
	}
	if len(args) < least || len(args) > most {
		return Fault{}, fmt.Errorf("fault %s takes %d to %d arguments, got %d", f.Mode, least, most, len(args))
	}
	if f.Mode != Status && opts != (Options{Percent: 100}) {
		return Fault{}, fmt.Errorf("fault %s takes no --percent and no --retry-after", f.Mode)
	}
	if len(args) == 0 {
		return f, nil
	}
	return f, f.argument(args[0], opts)
}

func (f *Fault) argument(arg string, opts Options) error {
	var err error
	switch f.Mode {
	case Delay:
		f.Wait, err = positive(arg)
	case Drop:
		f.Percent, err = strconv.Atoi(strings.TrimSuffix(arg, "%"))
		if err == nil {
			err = share(f.Percent)
		}
	case Reset:
		if f.Requests, err = strconv.Atoi(arg); err == nil && f.Requests > 0 {
			return nil
		}
		f.Requests = 0
		f.Wait, err = positive(arg)
	case Status:
		f.Percent, f.RetryAfter = opts.Percent, opts.RetryAfter
		if f.Code, err = strconv.Atoi(arg); err == nil && (f.Code < 400 || f.Code > 599) {
			err = fmt.Errorf("status %d is not between 400 and 599", f.Code)
		}
		if err == nil {
			err = share(f.Percent)
		}
	case HangList:
		f.Resource = arg
	}
	if err != nil {
		return fmt.Errorf("fault %s %s: %w", f.Mode, arg, err)
	}
	return nil
}

func positive(arg string) (time.Duration, error) {
	d, err := time.ParseDuration(arg)
	if err == nil && d <= 0 {
		err = fmt.Errorf("not a positive duration")
	}
	return d, err
}

func share(percent int) error {
	if percent < 1 || percent > 100 {
		return fmt.Errorf("%d is not between 1 and 100 per cent", percent)
	}
	return nil
}

// String returns the words that Parse accepts for this fault.
func (f Fault) String() string {
	words := []string{string(f.Mode)}
	switch f.Mode {
	case Delay:
		words = append(words, f.Wait.String())
	case Drop:
		words = append(words, fmt.Sprintf("%d%%", f.Percent))
	case Reset:
		if f.Requests > 0 {
			words = append(words, strconv.Itoa(f.Requests))
		} else if f.Wait > 0 {
			words = append(words, f.Wait.String())
		}
	case Status:
		words = append(words, strconv.Itoa(f.Code), http.StatusText(f.Code))
		if f.Percent < 100 {
			words = append(words, fmt.Sprintf("--percent %d", f.Percent))
		}
		if f.RetryAfter > 0 {
			words = append(words, "--retry-after "+f.RetryAfter.String())
		}
	case HangList:
		if f.Resource != "" {
			words = append(words, f.Resource)
		}
	}
	return strings.Join(words, " ")
}
