package console

import "testing"

func TestAPageThatWasMadeShortlyBeforeAChangeIsReadAgain(t *testing.T) {
	l := newLive()
	quiet, closed, _ := l.open("jane", everywhere)
	defer closed()
	if len(quiet.changed) != 0 {
		t.Error("without a change, a new stream reports one")
	}
	l.Changed("shop")
	late, closed, _ := l.open("jane", in("shop"))
	defer closed()
	if len(late.changed) != 1 {
		t.Error("a new stream does not report a change of a moment ago")
	}
}
