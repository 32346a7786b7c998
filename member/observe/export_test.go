package observe

import "time"

// SetLinger shortens the time for which a kind without holders is watched. Call it before Observe.
func (ob *Observer) SetLinger(d time.Duration) { ob.linger = d }

// SetGather shortens the time for which changed settings wait for others. Call it before Observe.
func (ob *Observer) SetGather(d time.Duration) { ob.gather = d }
