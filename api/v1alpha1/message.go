package v1alpha1

import "unicode/utf8"

// minMessage is the shortest limit of CutMessage at which it keeps the end of a text. Shorter limits are those of
// names and table cells, of which users look for the beginning.
const minMessage = 100

// CutMessage returns the message with at most the given number of characters. If the message is too long, it loses its
// middle, and "…" stands there. The beginning of a message says what failed, and its end says what a user can do. A
// text with a limit under 100 characters loses its end.
func CutMessage(message string, limit int) string {
	if len(message) <= limit || len(message) <= utf8.UTFMax*limit && utf8.RuneCountInString(message) <= limit {
		return message
	}
	if limit <= 0 {
		return ""
	}
	tail := 0
	if limit >= minMessage {
		tail = limit / 2
	}
	begins, ends := 0, len(message)
	for range limit - 1 - tail {
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
