package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/member"
)

// maxMessage is the maximum length of the message in a row of a binding, in characters.
const maxMessage = 256

func applied(reason, format string, args ...any) member.Outcome {
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: reason, Message: line(fmt.Sprintf(format, args...))}
}

func refused(reason string, retry member.Retry, format string, args ...any) member.Outcome {
	return member.Outcome{
		Applied: metav1.ConditionFalse, Reason: reason, Message: line(fmt.Sprintf(format, args...)), Retry: retry,
	}
}

// seen adds the UID, resourceVersion and generation of the live object to the outcome.
func seen(out member.Outcome, live *unstructured.Unstructured) member.Outcome {
	out.UID, out.ResourceVersion, out.Generation = live.GetUID(), live.GetResourceVersion(), live.GetGeneration()
	return out
}

// line converts a text of another server to one line of valid UTF-8 with at most maxMessage characters.
func line(s string) string { return member.Line(s, maxMessage) }
