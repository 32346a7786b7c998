package fleet

import (
	"context"
	"fmt"
)

// AddMember starts another cluster in the lab, with the arguments of `lab add`. It does not join the cluster to the
// hub.
func (f *Fleet) AddMember(ctx context.Context, name string, args ...string) (*Cluster, error) {
	if _, err := f.LabCommand(ctx, append([]string{"add", name}, args...)...); err != nil {
		return nil, err
	}
	if err := f.refresh(ctx); err != nil {
		return nil, err
	}
	if f.Members[name] == nil {
		return nil, fmt.Errorf("the lab added %s but does not list it", name)
	}
	return f.Members[name], nil
}

// Extend starts those clusters of a topology file that do not run yet. It does not join them to the hub.
func (f *Fleet) Extend(ctx context.Context, topology string) error {
	if _, err := f.LabCommand(ctx, "up", "--topology", topology); err != nil {
		return err
	}
	return f.refresh(ctx)
}

// RemoveMember stops a cluster that AddMember or Extend started, and deletes its data.
func (f *Fleet) RemoveMember(ctx context.Context, name string) error {
	delete(f.Members, name)
	_, err := f.LabCommand(ctx, "remove", name)
	return err
}
