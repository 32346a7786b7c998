package answer

import "context"

// expense has the amounts that one response has charged to the account of its call so far.
type expense struct {
	account            *account
	kept               bool // the account is kept for further answers of the call
	toShare, toProcess int64
}

// newExpense returns the expense of a response. If the context has an account (see Keep), the response is charged to
// it. Otherwise the response has an account of its own.
func newExpense(ctx context.Context, share *Budget) expense {
	var e expense
	if e.account, e.kept = ctx.Value(accountKey).(*account); !e.kept {
		e.account = &account{}
	}
	e.account.open(share)
	return e
}

// raise sets the cost of the response to a new value, and charges only the increase.
func (e *expense) raise(ctx context.Context, cost int64) error {
	toShare, toProcess := max(0, cost-freeCost), max(0, cost-ordinaryCost)
	if err := e.account.take(ctx, toShare-e.toShare, toProcess-e.toProcess); err != nil {
		return err
	}
	e.toShare, e.toProcess = toShare, toProcess
	return nil
}

// end records that the body of the response was closed.
func (e *expense) end() { e.account.closed(e.kept) }
