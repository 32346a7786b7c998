package read

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Log returns the last lines of a container's log. It implements a method of member.Reader. It stops reading if a
// member sends more than the requested size. If the pod of this name has another UID, the error is NotFound. The UID is
// read after the log: the pod with the UID existed before, so that it existed all the time.
func (r *Reader) Log(ctx context.Context, in member.LogIntent) (member.Log, error) {
	log, err := r.log(ctx, in)
	if err != nil && !apierrors.IsBadRequest(err) {
		return member.Log{}, err
	}
	if err := r.isPod(ctx, in); err != nil {
		return member.Log{}, err
	}
	return log, err
}

// isPod returns an error if the pod does not have the UID of the intent. It lists pods, because the hub has the right
// to list pods on a member that shows logs, but not always the right to get them.
func (r *Reader) isPod(ctx context.Context, in member.LogIntent) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, in.Pod).String(), Limit: 1}
	found := false
	_, err := page(answer.Within(ctx, ofPage), r.get(pods, in.Namespace), asMetadata, options, func(body []byte) (string, error) {
		var got metav1.PartialObjectMetadataList
		if err := utiljson.Unmarshal(body, &got); err != nil {
			return "", errNoList
		}
		found = slices.ContainsFunc(got.Items, func(o metav1.PartialObjectMetadata) bool { return o.Name == in.Pod && o.UID == in.UID })
		return "", nil
	})
	if err != nil {
		return fmt.Errorf("reading the UID of pod %s/%s: %w", in.Namespace, in.Pod, err)
	}
	if !found {
		return apierrors.NewNotFound(pods.GroupResource(), in.Pod)
	}
	return nil
}

func (r *Reader) log(ctx context.Context, in member.LogIntent) (member.Log, error) {
	ctx = answer.Streamed(ctx, in.Bytes+1)
	request := r.get(pods, in.Namespace).Name(in.Pod).SubResource("log").SetHeader("Accept", "*/*").
		Param("timestamps", "true").Param("limitBytes", strconv.FormatInt(in.Bytes, 10))
	if in.Lines > 0 {
		request = request.Param("tailLines", strconv.FormatInt(in.Lines, 10))
	}
	if in.Container != "" {
		request = request.Param("container", in.Container)
	}
	if !in.Since.IsZero() {
		request = request.Param("sinceTime", in.Since.UTC().Format(time.RFC3339))
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return member.Log{}, err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, in.Bytes))
	if err != nil {
		return member.Log{}, fmt.Errorf("reading the log of pod %s/%s: %w", in.Namespace, in.Pod, err)
	}
	return member.Log{Text: strings.ToValidUTF8(string(text), "\uFFFD"), Cut: int64(len(text)) >= in.Bytes}, nil
}
