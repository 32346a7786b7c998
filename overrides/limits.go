package overrides

// Bounds of what one policy, and all policies together, may ask for.
const (
	maxRules     = 64
	maxPatches   = 64 // operations of a rule
	maxTyped     = 32 // images, command, args, env or resources of a rule, and containers, requests or limits of one of these
	maxArguments = 256
	maxVariables = 128 // to set, or to remove, of one env
	maxKeys      = 64  // labels or annotations of a rule
	maxEdits     = 16  // of a rule
	maxSelectors = 64
	maxNames     = 256 // cluster names of a rule
	maxPriority  = 1000

	maxPointerBytes = 512
	maxDepth        = 64        // steps of a pointer, and levels of a value
	maxValueBytes   = 64 << 10  // a value or a mergePatch
	maxIndex        = 10000     // of a list, which must not be longer to be grown or shrunk
	maxAdded        = 256 << 10 // values and copies of all rules for one object in one cluster
	maxOperations   = 4096      // of all rules for one object in one cluster

	maxListed     = 500       // containers, or variables of one, that are looked up by name
	maxImageBytes = 1024      // of an image
	maxTextBytes  = 256 << 10 // of a string field that is edited
	maxText       = 1 << 20   // read for all edits of one object in one cluster
	maxMarks      = 16 << 10  // in these texts: each may make a node, which takes a hundred times its place
	maxKept       = 2 << 20   // kept of one object in one cluster to go back to if a test is not met
	maxExplained  = 8 << 20   // size of an object times the number of rules, to say who set what

	maxExpressionCost = 20_000  // of one evaluation: some milliseconds
	maxRenderCost     = 100_000 // of all expressions for one object in one cluster

	maxManifestBytes = 4 << 20      // of the rendered object, as JSON: no API server takes a request of more than 3 MiB
	maxManifestDepth = 2 * maxDepth // a value at the end of a pointer
)
