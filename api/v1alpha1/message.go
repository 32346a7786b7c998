package v1alpha1

import "unicode/utf8"

// shortestMessage is the shortest limit of CutMessage at which it keeps the end of a text. Shorter limits are those of
// names and table cells, of which users look for the beginning.
const shortestMessage = 100

// CutMessage returns the message with at most the given number of characters. If the message is too long, it loses its
// middle, and "…" stands there. The beginning of a message says what failed, and its end says what a user can do. A
// text with a limit under 100 characters loses its end.
func CutMessage(message string, most int) string {
	if len(message) <= most || len(message) <= utf8.UTFMax*most && utf8.RuneCountInString(message) <= most {
		return message
	}
	if most <= 0 {
		return ""
	}
	tail := 0
	if most >= shortestMessage {
		tail = most / 2
	}
	begins, ends := 0, len(message)
	for range most - 1 - tail {
		_, size := utf8.DecodeRuneInString(message[begins:])
		begins += size
	}
	for range tail {
		_, size := utf8.DecodeLastRuneInString(message[:ends])
		ends -= size
	}
	if tail == 0 {
		return message[:begins] + "…"
	}
	return message[:begins] + "…" + message[ends:]
}
