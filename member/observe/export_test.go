package observe

import "time"

// SetLinger changes how long a kind without holders is still watched. Call it before Observe.
func (ob *Observer) SetLinger(d time.Duration) { ob.linger = d }

// SetGather changes how long changed settings are collected before objects are read again. Call it before Observe.
func (ob *Observer) SetGather(d time.Duration) { ob.gather = d }
