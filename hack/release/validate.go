package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

// validators are the validators of `operator-sdk bundle validate`, and those of its optional validators that need no
// network.
var validators = validation.DefaultBundleValidators.WithValidators(
	validation.ObjectValidator,
	validation.OperatorHubV2Validator,
	validation.StandardCapabilitiesValidator,
	validation.StandardCategoriesValidator,
	validation.GoodPracticesValidator,
)

// ValidateBundle checks the bundle in a folder. It prints the warnings, and returns all errors as one.
func ValidateBundle(dir string, out io.Writer) error {
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return fmt.Errorf("loading the bundle in %s: %w", dir, err)
	}
	var faults []error
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, w := range result.Warnings {
			fmt.Fprintln(out, "bundle:", w.Error())
		}
		for _, e := range result.Errors {
			faults = append(faults, e)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("the bundle in %s is not valid: %w", dir, errors.Join(faults...))
	}
	return nil
}
