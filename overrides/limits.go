package overrides

// These are the limits of one override policy, and of all override policies together.
const (
	maxRules   = 64
	maxPatches = 64 // operations of a rule
	// maxTyped is the maximum length of the lists images, command, args, env and resources of a rule. It also limits the
	// containers, requests and limits in each entry of these lists.
	maxTyped     = 32
	maxArguments = 256
	maxVariables = 128 // variables to set, or to remove, in one env
	maxKeys      = 64  // labels or annotations of a rule
	maxEdits     = 16  // edits of a rule
	maxSelectors = 64
	maxNames     = 256 // cluster names of a rule
	maxPriority  = 1000

	maxPointerBytes = 512
	maxDepth        = 64        // steps of a pointer, and levels of a value
	maxValueBytes   = 64 << 10  // a value or a mergePatch
	maxIndex        = 10000     // index in a list; a list of this length can no longer grow or shrink
	maxAdded        = 256 << 10 // values and copies of all rules for one object in one cluster
	maxOperations   = 4096      // operations of all rules for one object in one cluster

	maxListed     = 500       // containers, or variables of a container, that are searched by name
	maxImageBytes = 1024      // bytes of an image
	maxTextBytes  = 256 << 10 // bytes of a string field that is edited
	maxText       = 1 << 20   // bytes parsed for all edits of one object in one cluster
	maxMarks      = 16 << 10  // marks in these texts: each may create a node of a hundred times its size
	maxKept       = 2 << 20   // bytes of copies of one object in one cluster, to restore it if a test fails
	maxExplained  = 8 << 20   // size of an object times the number of rules, to explain its fields

	maxExpressionCost = 20_000  // cost of one evaluation: some milliseconds
	maxRenderCost     = 100_000 // cost of all expressions for one object in one cluster

	// maxManifestBytes is the maximum size of the rendered object as JSON. API servers already refuse requests of more
	// than 3 MiB.
	maxManifestBytes = 4 << 20
	maxManifestDepth = 2 * maxDepth // a value at the end of a pointer
)
