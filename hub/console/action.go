package console

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
)

// csrfField is the form field with the CSRF token of the session.
const csrfField = "csrf"

var errForm = errors.New("the form belongs to another session: reload the page, and try again")

// actions returns the functions that change objects, each under the path to which browsers post its form. Each function
// returns the path of the page to show next.
func actions() map[string]func(context.Context, *visit) (next string, err error) {
	return map[string]func(context.Context, *visit) (string, error){
		"/rollouts/approve": approveWave,
		"/rollouts/pause":   pauseRollout,
		"/rollouts/resume":  resumeRollout,
		"/rollouts/skip":    skipCluster,
		"/rollouts/promote": promoteRollout,
		"/rollouts/undo":    undoRollout,
		"/removals/confirm": confirmRemoval,
	}
}

// sent reports whether the form of a request has the CSRF token of the session.
func (s session) sent(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue(csrfField)), []byte(s.CSRF)) == 1
}

// action handles a request that changes an object.
func (c *Console) action(act func(context.Context, *visit) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := c.session(r)
		if err != nil {
			c.toSignIn(w, r, err)
			return
		}
		if !s.sent(r) { // sent reads the form before a slot is taken, so that a slow browser holds no slot
			c.fail(w, &visit{Request: r, session: s, now: c.opts.Clock.Now()}, http.StatusForbidden, errForm)
			return
		}
		v, leave, ok := c.admitted(w, r, s)
		if !ok {
			return
		}
		defer leave()
		ctx, cancel := context.WithTimeout(r.Context(), readWithin)
		defer cancel()
		next, err := act(ctx, v)
		if err != nil {
			c.refuse(w, v, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}
