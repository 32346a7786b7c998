package command

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/view/wire"
)

func TestTwoMembersAreReadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		goOn := make(chan struct{})
		go func() {
			defer close(goOn)
			synctest.Wait()
			if n := asked.Load(); n != 2 {
				t.Errorf("%d are asked at a time", n)
			}
		}()
		eachMember([]string{"a", "b", "c", "d"}, func(string) error {
			asked.Add(1)
			<-goOn
			return nil
		})
	})
}

func TestAReadThatTheHubPutsOffIsAskedAgain(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	threeRegions(t)
	asked := 0
	h := newPlayedHub(t, func(_, what string, _ []byte) (any, error) {
		if asked++; asked == 1 {
			return nil, apierrors.NewTooManyRequests("too many ask", 1)
		}
		switch what {
		case wire.List:
			return podsOf("Status", []string{"web-0", "1"}), nil
		case wire.Events:
			return wire.EventsAnswer{}, nil
		case wire.Logs:
			return wire.LogsAnswer{}, nil
		}
		return nil, errors.New("that was not asked for")
	})
	for _, args := range [][]string{{"get", "pods", "--clusters"}, {"events", "cm/settings"}, {"logs", "cm/settings"}} {
		asked = 0
		_, err := h.hansectl(append(args, "-n", "shop", "--cluster", "ap-se-1")...)
		must(t, err)
		if asked != 2 {
			t.Errorf("%s: asked %d times", args[0], asked)
		}
	}
}
