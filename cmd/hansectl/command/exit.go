package command

import "errors"

// The exit code is 0 for success, 1 for any error, and 2 for wrong usage. If a command has other exit codes, or another
// meaning of a code, its help describes them.

// ExitError is the result of a command whose exit code has a special meaning.
type ExitError struct {
	Code int
	// Err is the error that is printed. It is nil if the command has already printed the whole result.
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

// ExitCode returns the exit code for the error of a command.
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

// failed gives an error the exit code 2. It is for commands such as diff, in which the exit code 1 does not mean an
// error.
func failed(err error) error {
	var exit *ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &ExitError{Code: 2, Err: err}
}
