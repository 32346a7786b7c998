package access

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPartyLeavesSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := New(4)
		user := func(name string) Party { return Party{"user/" + name, 2} }
		namespace := func(name string) Party { return Party{"namespace/" + name, 3} }
		free := func(parties ...Party) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			giveBack, ok := slots.Take(ctx, parties...)
			if ok {
				giveBack()
			}
			return ok
		}
		var held []func()
		for _, name := range []string{"a", "a", "b"} {
			giveBack, ok := slots.Take(t.Context(), user(name), namespace("shop"))
			if !ok {
				t.Fatalf("%s got no slot", name)
			}
			held = append(held, giveBack)
		}
		if free(user("c"), namespace("shop")) {
			t.Error("the namespace got more than its share")
		}
		if !free(user("b"), namespace("other")) || !free(user("c")) {
			t.Error("another namespace got no slot")
		}
		if free(user("a"), namespace("other")) {
			t.Error("a user got more than its share")
		}

		// A request that waits for a slot of the namespace shop must not occupy a slot of another namespace. It waits only
		// until its context ends.
		var waiting sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			waiting.Go(func() {
				if giveBack, ok := slots.Take(ctx, user("c"), namespace("shop")); ok {
					giveBack()
				}
			})
		}
		synctest.Wait()
		if !free(user("d"), namespace("other")) {
			t.Error("those who wait took the slots of another namespace")
		}
		cancel()
		waiting.Wait()
		for _, giveBack := range held {
			giveBack()
		}
		if !free(user("c"), namespace("shop")) {
			t.Error("slots that were given back are not free")
		}
		if len(slots.shares) > 0 || len(slots.all) > 0 {
			t.Errorf("left: %d parties, %d slots", len(slots.shares), len(slots.all))
		}
	})
}

func TestAllSlotsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := New(2)
		giveBack, _ := slots.Take(t.Context(), Party{"a", 1})
		_, _ = slots.Take(t.Context(), Party{"b", 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := slots.Take(ctx, Party{"c", 1}); ok {
			t.Error("a third slot was taken")
		}
		time.AfterFunc(time.Second, giveBack)
		if _, ok := slots.Take(t.Context(), Party{"c", 1}); !ok {
			t.Error("the slot that was given back was not taken")
		}
	})
}
