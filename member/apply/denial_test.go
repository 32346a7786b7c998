package apply

import "testing"

func TestTheTextOfADenialBeginsWithItsAuthor(t *testing.T) {
	for text, want := range map[string]string{
		`deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'sizes' with binding 'sizes-of-production' denied request: at most 2 replicas: ask team-x`: `ValidatingAdmissionPolicy 'sizes' denied request: at most 2 replicas: ask team-x`,
		`admission webhook "sizes.example.com" denied the request: pods "web-0" is forbidden: at most 2`:                                                           `admission webhook "sizes.example.com" denied the request: pods "web-0" is forbidden: at most 2`,
		`admission webhook "sizes.example.com" denied the request: at most 2`:                                                                                      `admission webhook "sizes.example.com" denied the request: at most 2`,
	} {
		if got := denial(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
