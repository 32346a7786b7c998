package kindwatch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pageSize bounds how many whole objects are in memory at once.
const pageSize = 500

// list reads every object page by page and puts the result in place of what was known. Without a resourceVersion the server
// answers with its latest state: another one could be older than what was already seen.
func (k *kind) list(ctx context.Context) error {
	listed := map[string]metav1.Object{}
	options := metav1.ListOptions{LabelSelector: k.options.LabelSelector, Limit: pageSize}
	k.report(func(s *State) { s.Refused = "" })
	for {
		page, err := k.page(ctx, options)
		if err != nil && isExpired(err) && options.Continue != "" {
			// The list took longer than the server keeps its state: once more, in one piece.
			clear(listed)
			options = metav1.ListOptions{LabelSelector: options.LabelSelector}
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			u := &page.Items[i]
			listed[Key(u.GetNamespace(), u.GetName())] = k.transform(u)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			k.version = page.GetResourceVersion()
			break
		}
	}
	k.replace(listed)
	return nil
}

func (k *kind) page(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	late := fmt.Errorf("%w within %s", errNoAnswer, k.options.ListTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, k.options.ListTimeout, late)
	defer cancel()
	page, err := k.options.Client.Resource(k.resource).List(ctx, o)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return page, err
}
