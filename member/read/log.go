package read

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/answer"
	"github.com/hanse-dev/hanse/member"
)

// Log returns the last lines of a container's log. It implements a method of member.Reader. It stops reading if a
// member sends more than the requested size.
func (r *Reader) Log(ctx context.Context, in member.LogIntent) (member.Log, error) {
	ctx = answer.Streamed(ctx, in.Bytes+1)
	pods := r.get(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, in.Namespace)
	request := pods.Name(in.Pod).SubResource("log").SetHeader("Accept", "*/*").
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
