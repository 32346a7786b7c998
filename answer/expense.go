package answer

import "context"

// expense is the part of an account that one response has charged so far.
type expense struct {
	account            *account
	kept               bool // the account is that of a call with more answers
	toShare, toProcess int64
}

// newExpense returns the expense of a response. It charges the account of the call, if the call has one.
func newExpense(ctx context.Context, share *Budget) expense {
	var e expense
	if e.account, e.kept = ctx.Value(accountKey).(*account); !e.kept {
		e.account = &account{}
	}
	e.account.open(share)
	return e
}

// raise charges the difference between the new cost of the response and its cost so far.
func (e *expense) raise(ctx context.Context, cost int64) error {
	toShare, toProcess := max(0, cost-freeCost), max(0, cost-ordinaryCost)
	if err := e.account.take(ctx, toShare-e.toShare, toProcess-e.toProcess); err != nil {
		return err
	}
	e.toShare, e.toProcess = toShare, toProcess
	return nil
}

// end records that the response was read.
func (e *expense) end() { e.account.closed(e.kept) }
