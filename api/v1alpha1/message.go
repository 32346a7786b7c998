package v1alpha1

import "unicode/utf8"

// CutMessage returns a message of at most that number of characters. A longer message is cut, and ends with "…".
func CutMessage(message string, most int) string {
	if len(message) <= most || len(message) <= utf8.UTFMax*most && utf8.RuneCountInString(message) <= most {
		return message
	}
	if most <= 0 {
		return ""
	}
	return string([]rune(message[:min(len(message), utf8.UTFMax*most)])[:most-1]) + "…"
}
