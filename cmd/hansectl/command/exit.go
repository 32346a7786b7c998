package command

import "errors"

// Exit codes: 0 is success, 1 any error, 2 wrong usage. What others mean, and another meaning of 1, the command's own
// help says.

// ExitError is the result of a command whose exit code says more than that it failed.
type ExitError struct {
	Code int
	// Err is nil if there is nothing more to say.
	Err error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap implements errors.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the exit code of a command that ended with the error.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return 1
}

// failed gives an error the exit code 2, for a command that has a meaning for 1.
func failed(err error) error {
	var exit *ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &ExitError{Code: 2, Err: err}
}
