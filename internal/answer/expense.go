package answer

import "context"

// expense has the amounts of memory that one response has charged to budgets so far. The account records all charges of
// the same call, which can have several responses.
type expense struct {
	account            *account
	kept               bool // the account is kept for further answers of the call
	toShare, toProcess int64
}

// newExpense returns the expense of a response, which has charged no memory yet. An account records the memory that a
// call has charged to budgets. If the context is from Keep, all requests with this context share one account. Otherwise
// the response has an account of its own.
func newExpense(ctx context.Context, share *Budget) expense {
	var e expense
	if e.account, e.kept = ctx.Value(accountKey).(*account); !e.kept {
		e.account = &account{}
	}
	e.account.open(share)
	return e
}

// raise sets the estimated memory of the response to a higher value, and charges only the increase to the budgets.
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
