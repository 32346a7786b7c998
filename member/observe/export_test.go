package observe

import "time"

// SetLinger shortens the time for which a kind without holders is watched. Call it before Observe.
func (ob *Observer) SetLinger(d time.Duration) { ob.linger = d }
