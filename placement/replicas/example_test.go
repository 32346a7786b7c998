package replicas_test

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// Ten replicas are divided by weight, and one cluster takes at most two of them.
func ExampleDivide() {
	division, err := replicas.Divide(replicas.Input{
		By:    hubv1.DivideByWeight,
		Total: 10,
		Clusters: []replicas.Cluster{
			{Name: "eu-fra-1", Weight: 3, Max: replicas.Unlimited},
			{Name: "eu-ber-1", Weight: 3, Max: 2},
			{Name: "cn-sha-1", Weight: 1, Max: replicas.Unlimited},
		},
	})
	fmt.Println(division.Shares, "rest", division.Rest, err)
	// Output: map[cn-sha-1:2 eu-ber-1:2 eu-fra-1:6] rest 0 <nil>
}

// Three clusters have room for six of eight replicas. Each cluster keeps its current replicas as far as they fit.
func ExampleDivide_pack() {
	held := int64(2)
	division, err := replicas.Divide(replicas.Input{
		By:    hubv1.DivideByPack,
		Total: 8,
		Clusters: []replicas.Cluster{
			{Name: "eu-fra-1", Max: replicas.Unlimited, Room: 3},
			{Name: "eu-ber-1", Max: replicas.Unlimited, Room: 2, Held: &held},
			{Name: "cn-sha-1", Max: replicas.Unlimited, Room: 1},
		},
	})
	fmt.Println(division.Shares, "rest", division.Rest, err)
	// Output: map[cn-sha-1:1 eu-ber-1:2 eu-fra-1:3] rest 2 <nil>
}
