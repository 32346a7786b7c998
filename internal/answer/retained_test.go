package answer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// server returns the limit for one server of a pool of its own tests.
func (p *pool) server() *Retained { return &Retained{pool: p, report: func(string, error) {}} }

func TestWhatIsKeptOfAServerIsLimited(t *testing.T) {
	p := newPool(16 << 20) // 1 MiB for a server, 4 MiB for all
	a := p.server()
	objects, schemas := a.Part(), a.Part()
	for _, err := range []error{objects.Add(600 << 10), schemas.Add(400 << 10)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	err := objects.Add(100 << 10)
	if !IsTooLarge(err) || !strings.Contains(err.Error(), "of the cluster is larger than 1 MiB, which is 1/16 of GOMEMLIMIT") {
		t.Errorf("error %v", err)
	}
	schemas.Close()
	if err := objects.Add(100 << 10); err != nil {
		t.Errorf("after a part was closed: %v", err)
	}
	objects.Shrink(10)
	if objects.bytes != 10 || a.bytes != 10 || p.bytes != 10 {
		t.Errorf("%d bytes in the part, %d of the server, %d in all; want 10", objects.bytes, a.bytes, p.bytes)
	}
}

func TestServersThatTakeEverythingLeaveTheOthersTheirShare(t *testing.T) {
	p := newPool(16 << 20)
	small := p.server().Part()
	for range 7 {
		large := p.server().Part()
		for large.Add(64<<10) == nil {
		}
	}
	share := p.maxBytes / 8
	if err := small.Add(share); err != nil {
		t.Errorf("an equal share of %d KiB does not fit: %v", share>>10, err)
	}
	err := small.Add(1)
	if !IsTooLarge(err) || !strings.Contains(err.Error(), "of all clusters is larger than 4 MiB, which is 1/4 of GOMEMLIMIT") {
		t.Errorf("error %v", err)
	}
}

// TestTheCountOfWhatIsKeptIsExact makes random calls of the methods, and compares the counts with a sum.
func TestTheCountOfWhatIsKeptIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(1 << 20)
		servers := []*Retained{p.server(), p.server(), p.server()}
		sizes, owner := map[*Part]int64{}, map[*Part]*Retained{}
		parts := []*Part{nil}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				of := rapid.SampledFrom(servers).Draw(t, "server")
				part := of.Part()
				parts, sizes[part], owner[part] = append(parts, part), 0, of
			},
			"add": func(t *rapid.T) {
				part, by := rapid.SampledFrom(parts).Draw(t, "part"), rapid.Int64Range(-1<<10, 1<<16).Draw(t, "by")
				_, open := sizes[part]
				if by = max(by, -sizes[part]); part.Add(by) == nil && open {
					sizes[part] += by
				}
			},
			"shrink": func(t *rapid.T) {
				part, to := rapid.SampledFrom(parts).Draw(t, "part"), rapid.Int64Range(0, 1<<16).Draw(t, "to")
				part.Shrink(to)
				if size, open := sizes[part]; open {
					sizes[part] = min(to, size)
				}
			},
			"close": func(t *rapid.T) {
				part := rapid.SampledFrom(parts).Draw(t, "part")
				part.Close()
				delete(sizes, part)
			},
			"": func(t *rapid.T) {
				all, of, open := int64(0), map[*Retained]int64{}, map[*Retained]bool{}
				for part, size := range sizes {
					all += size
					of[owner[part]] += size
					open[owner[part]] = true
				}
				if p.bytes != all || p.servers != len(open) {
					t.Fatalf("%d bytes of %d servers, want %d of %d", p.bytes, p.servers, all, len(open))
				}
				for _, s := range servers {
					if s.bytes != of[s] || s.bytes > p.maxPerServer {
						t.Fatalf("%d bytes of a server, want %d and at most %d", s.bytes, of[s], p.maxPerServer)
					}
				}
			},
		})
	})
}
