package command

import "errors"

// Exit is the result of a command whose exit code says more than that it failed.
type Exit struct {
	Code int
	// Err is nil if there is nothing more to say.
	Err error
}

// Error implements error.
func (e *Exit) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap implements errors.
func (e *Exit) Unwrap() error { return e.Err }

// failed gives an error the exit code 2, for a command that has a meaning for 1.
func failed(err error) error {
	var exit *Exit
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &Exit{Code: 2, Err: err}
}
