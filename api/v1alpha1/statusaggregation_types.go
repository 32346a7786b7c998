package v1alpha1

// StatusAggregation says how the copies of an object are judged, how their statuses are merged, and where the merged
// status goes.
type StatusAggregation struct {
	// mode is OnObject or BindingOnly. Default OnObject, for custom resources, and for Deployments, StatefulSets,
	// DaemonSets and ReplicaSets on a hub without controllers; every other kind is always BindingOnly.
	// +optional
	// +kubebuilder:default=OnObject
	Mode StatusMode `json:"mode,omitempty"`

	// healthExpression in CEL judges a copy, over object, which is the copy as the member has it: "object.status.state ==
	// 'running'". It gives a bool (true is Healthy, false Degraded), one of the strings Healthy, Progressing, Degraded and
	// Unknown, or a map with such a string as health and a text as message. Unset: health follows from the conventions of
	// status fields.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	HealthExpression string `json:"healthExpression,omitempty"`

	// reducers merge status fields that the hub leaves out by itself, or merge them in another way. At most 16; no path
	// may be below another one.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, !self.exists(b, b.path.startsWith(a.path + '/')))",message="no path may be below another one"
	Reducers []StatusReducer `json:"reducers,omitempty"`

	// conditionPolarity says of condition types whether True or False is their good value, where the hub does not know it
	// or takes it for something else. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	ConditionPolarity []ConditionPolarity `json:"conditionPolarity,omitempty"`
}

// StatusMode says where the merged status goes.
// +kubebuilder:validation:Enum=OnObject;BindingOnly
type StatusMode string

const (
	// StatusOnObject writes the merged status to the hub object where its schema and owners allow it.
	StatusOnObject StatusMode = "OnObject"
	// StatusBindingOnly keeps it in the binding.
	StatusBindingOnly StatusMode = "BindingOnly"
)

// StatusReducer says how the values that the clusters report of one status field become one.
//
// +kubebuilder:validation:XValidation:rule="has(self.expression) == (self.reducer == 'CEL')",message="expression is for reducer CEL, which needs one"
type StatusReducer struct {
	// path is a JSON pointer (RFC 6901) to the field, such as /status/storage/used. It names keys of objects only, not
	// places in lists. Conditions and generations have rules of their own.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/status(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('/(conditions|observedGeneration)(/|$)')",message="conditions and observedGeneration are merged by rules of their own; see conditionPolarity"
	Path string `json:"path"`

	// reducer is the rule by which the values become one.
	// +required
	Reducer Reducer `json:"reducer"`

	// expression of reducer CEL, over values, a list of {cluster, value} of the clusters that report the field, sorted by
	// cluster: "values.map(v, v.value).max()". What it gives has to be as the schema wants the field.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// Reducer is a rule by which values become one.
// +kubebuilder:validation:Enum=Sum;Min;Max;All;Any;Worst;Latest;First;Join;CEL
type Reducer string

const (
	// ReducerSum adds numbers or quantities.
	ReducerSum Reducer = "Sum"
	// ReducerMin takes the least number, quantity or time.
	ReducerMin Reducer = "Min"
	// ReducerMax takes the greatest number, quantity or time.
	ReducerMax Reducer = "Max"
	// ReducerAll is true if the field is true on all clusters.
	ReducerAll Reducer = "All"
	// ReducerAny is true if the field is true on some cluster.
	ReducerAny Reducer = "Any"
	// ReducerWorst takes the worst word of those that the hub can weigh, such as Failed.
	ReducerWorst Reducer = "Worst"
	// ReducerLatest takes the last time.
	ReducerLatest Reducer = "Latest"
	// ReducerFirst takes the value of the first cluster by name that reports one.
	ReducerFirst Reducer = "First"
	// ReducerJoin lists the different values: one text with commas, or a list where the field is one.
	ReducerJoin Reducer = "Join"
	// ReducerCEL evaluates an expression.
	ReducerCEL Reducer = "CEL"
)

// ConditionPolarity says which value of a condition type is the good one.
type ConditionPolarity struct {
	// type of the condition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// polarity Positive means that True is good, Negative that False is.
	// +required
	Polarity Polarity `json:"polarity"`
}

// Polarity says which value of a condition is the good one.
// +kubebuilder:validation:Enum=Positive;Negative
type Polarity string

const (
	// PolarityPositive means that True is good.
	PolarityPositive Polarity = "Positive"
	// PolarityNegative means that False is good.
	PolarityNegative Polarity = "Negative"
)
