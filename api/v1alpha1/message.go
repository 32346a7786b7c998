package v1alpha1

import "unicode/utf8"

// CutMessage cuts a message to at most this number of characters. A message that was cut ends with "…".
func CutMessage(message string, most int) string {
	if len(message) <= most || len(message) <= utf8.UTFMax*most && utf8.RuneCountInString(message) <= most {
		return message
	}
	if most <= 0 {
		return ""
	}
	return string([]rune(message[:min(len(message), utf8.UTFMax*most)])[:most-1]) + "…"
}
