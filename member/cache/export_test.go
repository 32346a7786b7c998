package cache

import "time"

// SetLinger changes how long a kind is watched after no binding needs it any more. Call it before Observe.
func (ob *Observer) SetLinger(d time.Duration) { ob.linger = d }

// SetGather changes how long the observer waits after a change of settings before it reads objects again. Call it
// before Observe.
func (ob *Observer) SetGather(d time.Duration) { ob.gather = d }
