package v1alpha1

import "unicode/utf8"

// CutMessage returns the message with at most the given number of characters. If the message is cut, it ends with "…".
func CutMessage(message string, most int) string {
	if len(message) <= most || len(message) <= utf8.UTFMax*most && utf8.RuneCountInString(message) <= most {
		return message
	}
	if most <= 0 {
		return ""
	}
	return string([]rune(message[:min(len(message), utf8.UTFMax*most)])[:most-1]) + "…"
}
