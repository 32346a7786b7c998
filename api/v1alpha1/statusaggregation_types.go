package v1alpha1

// StatusAggregation sets how the health of copies is judged, how their statuses are merged, and where the result is
// written.
type StatusAggregation struct {
	// mode sets where the merged status is written. OnObject writes it to the hub object and to the binding, and
	// BindingOnly only to the binding. Default OnObject. OnObject is possible for custom resources. It is also possible
	// for Deployments, StatefulSets, DaemonSets and ReplicaSets on a hub without controllers. For all other kinds, the
	// mode is BindingOnly.
	// +optional
	// +kubebuilder:default=OnObject
	Mode StatusMode `json:"mode,omitempty"`

	// healthExpression is a CEL expression that judges the health of a copy, such as "object.status.state == 'running'".
	// The variable object is the copy on the member. The result true means Healthy, and false means Degraded. The result
	// may also be one of the strings Healthy, Progressing, Degraded and Unknown, or a map with the keys health and
	// message. Unset: the hub judges the health by the usual status fields.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	HealthExpression string `json:"healthExpression,omitempty"`

	// reducers set how single status fields are merged, for example fields that the hub does not merge by default. At most
	// 16. No path may be below another path.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, !self.exists(b, b.path.startsWith(a.path + '/')))",message="no path may be below another one"
	Reducers []StatusReducer `json:"reducers,omitempty"`

	// conditionPolarity sets the good value, True or False, of condition types that the hub does not know or judges
	// wrongly. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	ConditionPolarity []ConditionPolarity `json:"conditionPolarity,omitempty"`
}

// StatusMode sets where the merged status is written.
// +kubebuilder:validation:Enum=OnObject;BindingOnly
type StatusMode string

const (
	// StatusOnObject writes the merged status to the hub object, if its schema and the owners of its status fields allow
	// this, and to the binding.
	StatusOnObject StatusMode = "OnObject"
	// StatusBindingOnly writes the merged status to the binding only.
	StatusBindingOnly StatusMode = "BindingOnly"
)

// StatusReducer sets how the values that clusters report for one status field are merged.
//
// +kubebuilder:validation:XValidation:rule="has(self.expression) == (self.reducer == 'CEL')",message="set expression if and only if reducer is CEL"
type StatusReducer struct {
	// path is a JSON pointer (RFC 6901) to the status field, such as /status/storage/used. It names keys of objects, not
	// items of lists. It cannot name conditions or generations, which the hub merges by rules of its own.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/status(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('/(conditions|observedGeneration)(/|$)')",message="conditions and observedGeneration are merged by their own rules; see conditionPolarity"
	Path string `json:"path"`

	// reducer is the rule that merges the values. With CEL, the field expression has the rule.
	// +required
	Reducer Reducer `json:"reducer"`

	// expression is a CEL expression for the reducer CEL, such as "values.map(v, v.value).max()". The variable values is a
	// list with an item {cluster, value} for each cluster that reports the field, sorted by cluster. The result must match
	// the schema of the field.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// Reducer is a rule that merges values.
// +kubebuilder:validation:Enum=Sum;Min;Max;All;Any;Worst;Latest;First;Join;CEL
type Reducer string

const (
	// ReducerSum returns the sum of numbers or quantities.
	ReducerSum Reducer = "Sum"
	// ReducerMin returns the least number, quantity or time.
	ReducerMin Reducer = "Min"
	// ReducerMax returns the greatest number, quantity or time.
	ReducerMax Reducer = "Max"
	// ReducerAll returns true if the field is true on all clusters.
	ReducerAll Reducer = "All"
	// ReducerAny returns true if the field is true on at least one cluster.
	ReducerAny Reducer = "Any"
	// ReducerWorst returns the worst value. The values must be words for a state that the hub knows, such as Ready,
	// Pending and Failed.
	ReducerWorst Reducer = "Worst"
	// ReducerLatest returns the latest time.
	ReducerLatest Reducer = "Latest"
	// ReducerFirst returns the value of the first cluster, by name, that reports the field.
	ReducerFirst Reducer = "First"
	// ReducerJoin returns all different values. The result is a text with the values separated by commas, or a list if the
	// field is a list.
	ReducerJoin Reducer = "Join"
	// ReducerCEL returns the result of the CEL expression in the field expression.
	ReducerCEL Reducer = "CEL"
)

// ConditionPolarity sets which value of a condition type is good.
type ConditionPolarity struct {
	// type of the condition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// polarity is the meaning of True. Positive means that True is good. Negative means that False is good.
	// +required
	Polarity Polarity `json:"polarity"`
}

// Polarity says whether True or False is the good value of a condition.
// +kubebuilder:validation:Enum=Positive;Negative
type Polarity string

const (
	// PolarityPositive means that True is good.
	PolarityPositive Polarity = "Positive"
	// PolarityNegative means that False is good.
	PolarityNegative Polarity = "Negative"
)
