package decide

import "github.com/hanse-dev/hanse/placement/decide/decidetest"

var (
	template     = decidetest.Template
	cluster      = decidetest.Cluster
	unreachable  = decidetest.Unreachable
	leaving      = decidetest.Leaving
	abandonAfter = decidetest.AbandonAfter
	policy       = decidetest.Policy
	named        = decidetest.Named
	spreading    = decidetest.Spreading
	serving      = decidetest.Serving
	labelled     = decidetest.Labelled
	absent       = decidetest.Absent
	bound        = decidetest.Bound
	known        = decidetest.Known
	refusedRow   = decidetest.RefusedRow
	rowSays      = decidetest.WithFailedRow
	withdrawnRow = decidetest.WithdrawnRow
	lost         = decidetest.Lost
	drained      = decidetest.Drained
	emptied      = decidetest.Emptied
	evictedBy    = decidetest.EvictedBy
	having       = decidetest.Having
	entriesOf    = decidetest.EntriesOf
	saying       = decidetest.WithRows
	failingOver  = decidetest.FailingOver
	dividing     = decidetest.Dividing
	noMoreThan   = decidetest.NoMoreThan
	cpus         = decidetest.Cpus
	share        = decidetest.Share
	divided      = decidetest.Divided
	shares       = decidetest.Shares
	only         = decidetest.Only
	enforced     = decidetest.Enforced
	three        = decidetest.Three
	excluding    = decidetest.Excluding
	naming       = decidetest.Naming
	these        = decidetest.These
	now          = decidetest.Now
	object       = decidetest.Object
)
