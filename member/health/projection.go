package health

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Loss says which values a projection may have lost to its size limit: this constant's and those of the constants
// before it.
type Loss int

// What a projection loses, the first one first.
const (
	LostNothing Loss = iota
	LostStrings
	LostNested // whole maps and lists
	LostReasons
	LostBooleans
	LostNumbers
	LostConditions
	LostNamed
)

// lossField holds the Loss of a projection. No field of a status has this name.
const lossField = "~"

// reserved is true for names under which a projection keeps something else.
func reserved(name string) bool { return name == lossField || strings.HasPrefix(name, "/") }

// Projection is the result of Project.
type Projection struct {
	// Fields of the status.
	Fields map[string]any
	// Named are the values at the paths that Project was given, by their pointers below the status: "/storage/used". nil
	// says that the status has none; a pointer that is missing was too large, lost, or not asked for.
	Named map[string]any
	// Lost says which values may be missing because they did not fit.
	Lost Loss
}

// ReadProjection reads what Project returned.
func ReadProjection(data []byte) (Projection, error) {
	var p Projection
	if len(data) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(data, &p.Fields); err != nil {
		return Projection{}, fmt.Errorf("reading the projection of a status: %w", err)
	}
	for name, value := range p.Fields {
		switch {
		case name == lossField:
			lost, _ := value.(float64)
			p.Lost = min(max(Loss(lost), LostNothing), LostNamed)
		case strings.HasPrefix(name, "/"):
			if p.Named == nil {
				p.Named = map[string]any{}
			}
			p.Named[name] = value
		default:
			continue
		}
		delete(p.Fields, name)
	}
	return p, nil
}
