package health

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Loss is the last group of values that a projection lost to its size limit. Groups with smaller constants are lost,
// too.
type Loss int

// The groups of values in the order in which a projection loses them.
const (
	LostNothing Loss = iota
	LostStrings
	LostNested // complete maps and lists
	LostReasons
	LostBooleans
	LostNumbers
	LostConditions
	LostNamed
)

// lossField is the field for the Loss of a projection. No status has a field of this name.
const lossField = "~"

// reserved reports whether a projection uses the name for its own fields.
func reserved(name string) bool { return name == lossField || strings.HasPrefix(name, "/") }

// Projection is the result of Project.
type Projection struct {
	// Fields of the status.
	Fields map[string]any
	// Named are the values at the paths given to Project, by their pointers below the status: "/storage/used". nil
	// means that the status has no value there. A missing pointer was too large, lost, or not requested.
	Named map[string]any
	// Lost tells which values may be missing because of the size limit.
	Lost Loss
}

// ReadProjection parses the result of Project.
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
