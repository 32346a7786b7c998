// Command crdcheck compares the CustomResourceDefinitions of two releases and prints every incompatible change of the
// newer one. It exits with 1 if there is an incompatible change without a line in the file ACCEPTED.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: crdcheck OLD-FOLDER NEW-FOLDER ACCEPTED")
		os.Exit(2)
	}
	faults, err := Check(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdcheck:", err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}
