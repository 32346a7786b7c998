package health

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Loss is the last group of values that a projection has lost because of its size limit. A projection is the part of a
// status that the hub keeps. It has also lost all groups with a smaller constant.
type Loss int

// The constants are in the order in which a projection, which is the kept part of a status, loses the groups of values.
const (
	LostNothing Loss = iota
	LostStrings
	LostNested // maps and lists, with all their values
	LostReasons
	LostBooleans
	LostNumbers
	LostConditions
	LostNamed
)

// lossField is the name of the field in a projection that records its Loss. No status has a field of this name.
const lossField = "~"

// reserved reports whether a projection (the kept part of a status) uses the name for its own fields. Fields of the
// status with this name are not kept.
func reserved(name string) bool { return name == lossField || strings.HasPrefix(name, "/") }

// Projection is the parsed result of Project: the part of a status that the hub keeps.
type Projection struct {
	// Fields are the fields of a status that the hub keeps.
	Fields map[string]any
	// Named has the values at the paths that were given to Project, by their JSON pointers below the status, such as
	// "/storage/used". A nil value means that the status has no such field. If a path has no entry, its value was too
	// large or lost, or was not requested.
	Named map[string]any
	// Lost tells which groups of values the hub did not keep, because the kept part of the status has a maximum size.
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
