package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotificationSink is a receiver of the hub's events, such as a chat, a pager or a log. The hub sends the events by
// HTTPS: as signed CloudEvents, or as messages for Slack, Microsoft Teams or PagerDuty.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=hanse
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Delivered",type=integer,JSONPath=`.status.delivered`
// +kubebuilder:printcolumn:name="Dropped",type=integer,JSONPath=`.status.dropped`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastDeliveredTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NotificationSink struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec sets where notifications are sent, and which ones.
	// +required
	Spec NotificationSinkSpec `json:"spec"`

	// status says whether the receiver accepts notifications.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NotificationSinkStatus `json:"status,omitempty"`
}

// NotificationSinkList is a list of NotificationSinks.
//
// +kubebuilder:object:root=true
type NotificationSinkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NotificationSink `json:"items"`
}

// NotificationSinkSpec has the address of a receiver, its format, a Secret, and a filter.
//
// +kubebuilder:validation:XValidation:rule="self.format != 'CloudEvents' || has(self.url) && has(self.secretRef)",message="the format CloudEvents needs url, and secretRef with the signing key"
// +kubebuilder:validation:XValidation:rule="!(self.format in ['Slack', 'Teams']) || has(self.url) != has(self.secretRef)",message="the formats Slack and Teams need either url, or secretRef with an entry url"
// +kubebuilder:validation:XValidation:rule="self.format != 'PagerDuty' || has(self.secretRef)",message="the format PagerDuty needs secretRef with an entry routingKey"
// +kubebuilder:validation:XValidation:rule="self.format == 'CloudEvents' || !has(self.secretRef) || !has(self.secretRef.key)",message="secretRef.key is for the format CloudEvents alone: Slack and Teams use the entry url, PagerDuty the entry routingKey"
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || self.caBundle.matches('^[A-Za-z0-9+/\\n]+={0,2}\\n?$')",fieldPath=".caBundle",message="want PEM encoded in base64, as base64 -w0 ca.crt prints it"
type NotificationSinkSpec struct {
	// format is the form of the requests. CloudEvents: one signed request for each event. Slack: messages for an incoming
	// webhook. Teams: adaptive cards for a webhook of Workflows. In both, events of one cause are one message. PagerDuty:
	// events of version 2 of its API, which open and resolve incidents. Default CloudEvents.
	// +optional
	// +kubebuilder:default=CloudEvents
	Format NotificationFormat `json:"format,omitempty"`

	// url is the address to which the hub sends notifications by POST. It must use https, and must have no user, password
	// or fragment. The hub follows no redirect. Unset: for Slack and Teams, the entry url of the Secret in secretRef; for
	// PagerDuty, https://events.pagerduty.com/v2/enqueue. CloudEvents needs it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('@') && !self.contains('#')",message="url is https://HOST/PATH, without user, password and fragment"
	URL string `json:"url,omitempty"`

	// secretRef names the Secret with what authenticates the hub. CloudEvents: the key for signatures. Slack and Teams:
	// the URL of the webhook, in the entry url. PagerDuty: the integration key, in the entry routingKey. Unset: Slack and
	// Teams use the field url.
	// +optional
	SecretRef NotificationSecretRef `json:"secretRef,omitzero"`

	// caBundle has the CA certificates that the hub trusts for this receiver: PEM, encoded in base64, as "base64 -w0
	// ca.crt" prints it. Unset: the hub trusts the CAs of its container image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`

	// filter selects notifications. A notification must match all fields that are set. Unset: all notifications.
	// +optional
	Filter NotificationFilter `json:"filter,omitempty"`
}

// NotificationFormat is the form of the requests to a receiver.
// +kubebuilder:validation:Enum=CloudEvents;Slack;Teams;PagerDuty
type NotificationFormat string

const (
	// FormatCloudEvents sends each event as a CloudEvent with signatures of Standard Webhooks.
	FormatCloudEvents NotificationFormat = "CloudEvents"
	// FormatSlack sends messages to an incoming webhook of Slack.
	FormatSlack NotificationFormat = "Slack"
	// FormatTeams sends adaptive cards to a webhook of Workflows in Microsoft Teams.
	FormatTeams NotificationFormat = "Teams"
	// FormatPagerDuty sends events to version 2 of PagerDuty's Events API.
	FormatPagerDuty NotificationFormat = "PagerDuty"
)

// NotificationSecretRef names a Secret in the namespace hanse-system.
type NotificationSecretRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the Secret's data, for the format CloudEvents alone. Unset: "signingKey". The value has the format of
	// Standard Webhooks: whsec_ followed by 24 to 64 bytes in base64. The value may have two such lines. The hub then
	// signs each notification twice, so that a receiver can change from one key to the other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// NotificationFilter selects notifications.
type NotificationFilter struct {
	// minSeverity is the lowest severity that is sent: Normal, Warning or Critical. Default Normal: notifications of every
	// severity are sent.
	// +optional
	// +kubebuilder:default=Normal
	MinSeverity NotificationSeverity `json:"minSeverity,omitempty"`

	// kinds are the kinds of the objects that notifications are about. An entry is a Kind of any group, such as
	// MemberCluster, or Kind.group, such as Prometheus.monitoring.coreos.com. Unset: all kinds. At most 100.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	Kinds []string `json:"kinds,omitempty"`

	// placements selects notifications about these placements, and about objects that follow these placements. Unset: all
	// notifications. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Placements []PlacementName `json:"placements,omitempty"`
}

// PlacementName names a Placement, or a ClusterPlacement if it has no namespace.
type PlacementName struct {
	// namespace of a Placement. Unset: the entry names a ClusterPlacement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// NotificationSeverity says how urgent a notification is.
// +kubebuilder:validation:Enum=Normal;Warning;Critical
type NotificationSeverity string

const (
	// SeverityNormal is the severity of events of the type Normal.
	SeverityNormal NotificationSeverity = "Normal"
	// SeverityWarning is the severity of events of the type Warning.
	SeverityWarning NotificationSeverity = "Warning"
	// SeverityCritical is the severity of an event of the type Warning about unreachable clusters, or about copies for
	// which a user must decide.
	SeverityCritical NotificationSeverity = "Critical"
)

// NotificationSinkStatus says whether a receiver accepts notifications. Each replica of the hub sends notifications,
// and all replicas write this status.
type NotificationSinkStatus struct {
	// observedGeneration is the generation of the spec that the hub has processed. Until a notification was sent with this
	// spec, the condition Ready is Unknown.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// delivered is the number of notifications that the receiver has accepted. Each replica writes it at most once a
	// minute.
	// +optional
	// +kubebuilder:default=0
	Delivered int64 `json:"delivered"`

	// dropped is the number of notifications that the hub will not send any more. The receiver has refused them, has not
	// accepted them within an hour, or newer notifications have replaced them in the queue.
	// +optional
	// +kubebuilder:default=0
	Dropped int64 `json:"dropped"`

	// lastDeliveredTime is the time at which the receiver last accepted a notification. A later delivery may be missing,
	// because each replica writes this status at most once a minute while Ready does not change.
	// +optional
	LastDeliveredTime *metav1.Time `json:"lastDeliveredTime,omitempty"`

	// lastFailedTime is the time at which a delivery last failed. A later failure may be missing, because each replica
	// writes this status at most once a minute while Ready does not change.
	// +optional
	LastFailedTime *metav1.Time `json:"lastFailedTime,omitempty"`

	// failingReplica is the host name of the replica of the hub whose delivery failed last. Unset: Ready is not False.
	// +optional
	FailingReplica string `json:"failingReplica,omitempty"`

	// test is the result of the last test that a user requested, with hansectl sink test or the annotation
	// hanse.dev/test-sink. Unset: no test was requested.
	// +optional
	Test *SinkTest `json:"test,omitempty"`
}

// SinkTest is the result of a test message.
type SinkTest struct {
	// id is the value of the annotation hanse.dev/test-sink that requested the test.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// time is when the receiver answered, or when the hub gave up.
	// +required
	Time metav1.Time `json:"time"`

	// delivered says whether the receiver accepted the message.
	// +required
	Delivered bool `json:"delivered"`

	// message is the status code of the receiver's answer, or the error.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
