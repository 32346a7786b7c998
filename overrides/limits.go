package overrides

// Bounds of what one policy, and all policies together, may ask for.
const (
	maxRules     = 64
	maxPatches   = 64 // operations of a rule
	maxSelectors = 64
	maxNames     = 256 // cluster names of a rule
	maxPriority  = 1000

	maxPointerBytes = 512
	maxDepth        = 64        // steps of a pointer, and levels of a value
	maxValueBytes   = 64 << 10  // a value or a mergePatch
	maxIndex        = 10000     // of a list, which must not be longer to be grown or shrunk
	maxAdded        = 256 << 10 // values and copies of all rules for one object in one cluster
	maxOperations   = 4096      // of all rules for one object in one cluster

	maxExpressionCost = 20_000  // of one evaluation: some milliseconds
	maxRenderCost     = 100_000 // of all expressions for one object in one cluster

	maxManifestBytes = 1 << 20      // of the rendered object, as JSON
	maxManifestDepth = 2 * maxDepth // a value at the end of a pointer
)
