package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/errdef"
)

const (
	maxTags     = 100_000
	maxTagPages = 100
	tagsPerPage = 1000 // a registry may send fewer tags, or more
)

var errTags = fmt.Errorf("the registry has more than %d tags, or more than %d pages of them, for the chart", maxTags, maxTagPages)

// Versions lists the versions of a chart that its repository has. It calls add with a part of them at a time, in any
// order. In a registry, each tag is a version, also one such as latest. Versions ignores the fields Version, Digest and
// Known of the chart. It waits for other fetches from the same host, and then at most MaxTime. The error contains no
// secrets.
func (f *Fetcher) Versions(ctx context.Context, ch Chart, add func(versions []string)) error {
	u, err := f.allowed(ch)
	if err != nil {
		return err
	}
	end, err := f.turn(ctx, u)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, MaxTime, errTime)
	defer cancel()
	return f.with(ctx, ch, u, func(t *fetching) error {
		if u.Scheme == schemeOCI {
			return t.tags(ctx, add)
		}
		entries, err := t.entries(ctx)
		if err != nil {
			return err
		}
		var versions []string
		for _, e := range entries {
			if len(e.URLs) > 0 {
				versions = append(versions, e.Version)
			}
		}
		add(versions)
		return nil
	})
}

// tags lists the tags of the chart in a registry.
func (t *fetching) tags(ctx context.Context, add func(versions []string)) error {
	repository, err := t.registry()
	if err != nil {
		return err
	}
	repository.TagListPageSize, repository.TagListMaxPages = tagsPerPage, maxTagPages
	left := maxTags
	err = repository.Tags(ctx, "", func(tags []string) error {
		if left -= len(tags); left < 0 {
			return errTags
		}
		versions := make([]string, 0, len(tags))
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+")) // a tag cannot have a +
		}
		add(versions)
		return nil
	})
	if errors.Is(err, errdef.ErrTooManyPages) {
		return errTags
	}
	return err
}
