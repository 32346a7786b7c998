/*
Copyright 2016 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package replicas

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// kubefed divides as the planner of KubeFed v0.10 does (pkg/controller/util/planner), from which it is derived: everybody's least, then, unless
// Rebalance, what slots have already, then round after round by weight, each part rounded up. So 10 replicas over three equal clusters are
// 4, 4 and 2. Changed is what cannot come in here: capacities, numbers below 0, a least above the most; and equal hashes are told apart by name.
func kubefed(open []slot, total int64, in Input) {
	hashes := make(map[string]uint32, len(open))
	for _, s := range open {
		h := fnv.New32()
		h.Write([]byte(s.name + in.Key)) // never fails
		hashes[s.name] = h.Sum32()
	}
	slices.SortFunc(open, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(hashes[a.name], hashes[b.name]), cmp.Compare(a.name, b.name))
	})
	left := total
	for i := range open {
		open[i].share = min(open[i].lo, left)
		left -= open[i].share
	}
	ahead := make(map[string]int64, len(open)) // of what is due to a slot, how much it was given because it has it
	if !in.Rebalance {
		for i := range open {
			s := &open[i]
			more := max(0, min(min(s.held, s.hi)-s.share, left))
			ahead[s.name] = more
			s.share += more
			left -= more
		}
	}
	rounds(open, left, ahead)
}

// rounds divides what is left by weight until there is nothing left, or nobody takes more.
func rounds(open []slot, left int64, ahead map[string]int64) {
	taking := make([]*slot, len(open))
	for i := range open {
		taking[i] = &open[i]
	}
	for moved := true; moved && left > 0; {
		moved = false
		weights, due := int64(0), left
		for _, s := range taking {
			weights += s.weight
		}
		if weights == 0 {
			return
		}
		var next []*slot
		for _, s := range taking {
			extra := min((due*s.weight+weights-1)/weights, left)
			had := min(extra, ahead[s.name])
			ahead[s.name] -= had
			extra -= had
			moved = moved || had > 0
			if extra > s.hi-s.share {
				extra = s.hi - s.share
			} else {
				next = append(next, s)
			}
			s.share += extra
			left -= extra
			moved = moved || extra > 0
		}
		taking = next
	}
}
