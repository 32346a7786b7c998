package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Loss is the set of the groups of values of which a projection has lost at least one, because of its size limit.
type Loss uint16

// These are the groups of values, in the order in which a projection loses them: the first group weighs least.
const (
	// LostDetails are strings and numbers that no other group has, and strings and booleans in nested values. The hub
	// merges none of them but top-level strings that are equal everywhere.
	LostDetails Loss = 1 << iota
	LostReasons      // reasons and generations of conditions
	LostBooleans
	LostParts // conditions that are good, and do not describe the whole object
	LostWords // phases, states, expiries and the like
	LostNested
	LostCounts
	LostConditions // all other conditions: good ones of the whole object, and at last bad ones
	LostNamed

	LostNothing    Loss = 0
	LostEverything      = LostNamed<<1 - 1
)

// Has reports whether values of one of the groups are lost.
func (l Loss) Has(groups Loss) bool { return l&groups != 0 }

// Names of fields that a projection uses itself. No status has a field whose name begins with ownPrefix.
const (
	ownPrefix = "~"
	// lossField has the Loss.
	lossField = "~"
	// shortField, followed by a status such as True, has the types of the conditions of this status that have neither a
	// reason nor a generation. In a list of types, a condition needs less than half of its space.
	shortField = "~conditions"
)

// An earlier version stored a number from 1 to 7 as the Loss: the number of lost groups, in the order of formerly. A
// Loss is stored with newLoss added. An earlier version, which may run beside this one during an upgrade, then takes
// all groups for lost.
const newLoss = LostNamed << 1

var formerly = []Loss{LostDetails | LostWords, LostNested, LostReasons, LostBooleans, LostCounts, LostParts | LostConditions, LostNamed}

func readLoss(value any) Loss {
	number, ok := integer(value)
	switch {
	case value == nil:
		return LostNothing
	case !ok:
		return LostEverything
	case number >= int64(newLoss):
		return Loss(number) & LostEverything
	}
	var lost Loss
	for _, group := range formerly[:min(number, int64(len(formerly)))] {
		lost |= group
	}
	return lost
}

// reserved reports whether a projection uses the name for its own fields. Fields of the status with this name are not
// kept.
func reserved(name string) bool {
	return strings.HasPrefix(name, ownPrefix) || strings.HasPrefix(name, "/")
}

// LossOf returns the group that has a value of the field. The value is at the top level of a status, and is a number or
// a string.
func LossOf(field string) Loss {
	switch {
	case IsCount(field), IsAmount(field):
		return LostCounts
	case IsPhase(field), IsExpiry(field), IsFailureTime(field), namedLikePhase(field):
		return LostWords
	}
	return LostDetails
}

// Projection is the parsed result of Project: the part of a status that the hub keeps.
type Projection struct {
	// Fields are the fields of a status that the hub keeps.
	Fields map[string]any
	// Named has the values at the paths that were given to Project, by their JSON pointers below the status, such as
	// "/storage/used". A nil value means that the status has no such field. If a path has no entry, its value was too
	// large or lost, or was not requested.
	Named map[string]any
	// Lost tells of which groups of values the hub did not keep all, because the kept part of the status has a maximum
	// size.
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
	conditions, _ := p.Fields["conditions"].([]any)
	for name, value := range p.Fields {
		switch {
		case name == lossField:
			p.Lost = readLoss(value)
		case strings.HasPrefix(name, shortField):
			types, _ := value.([]any)
			for _, kind := range types {
				conditions = append(conditions, map[string]any{"type": kind, "status": strings.TrimPrefix(name, shortField)})
			}
		case strings.HasPrefix(name, "/"):
			if p.Named == nil {
				p.Named = map[string]any{}
			}
			p.Named[name] = value
		case !strings.HasPrefix(name, ownPrefix):
			continue
		}
		delete(p.Fields, name)
	}
	if len(conditions) > 0 {
		slices.SortStableFunc(conditions, byType)
		p.Fields["conditions"] = conditions
	}
	return p, nil
}
