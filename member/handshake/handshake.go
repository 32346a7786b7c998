// Package handshake has what a hub and the agents of its members agree on when an agent opens a lane: a connection on
// which the hub sends HTTP/2 requests to the agent.
//
// The agent opens a TLS 1.3 connection with the server name NAME.hanse.internal, and shows its key in a certificate
// that it made itself. It sends POST /v1/lanes/LANE with the header Upgrade. After the answer 101, the agent is the
// HTTP/2 server of the connection, without a second TLS handshake.
//
// An agent with a key that the hub does not know may send POST /v1/join with a token and Facts, so that a user can
// approve its key. The answer is 202 until the key is approved.
package handshake

const (
	// Protocol is the value of the header Upgrade with which an agent opens a lane.
	Protocol = "hanse-lane/1"
	// InstanceHeader has an ID of the agent's process. All lanes of a member belong to one process.
	InstanceHeader = "Hanse-Instance"
	// LanePath is the path to which an agent sends the request for a lane, without the name of the lane.
	LanePath = "/v1/lanes/"
	// ServerSuffix follows the name of the member in the server name of the agent's TLS connection.
	ServerSuffix = ".hanse.internal"
	// JoinPath is the path to which an agent sends its Facts, and its token as a bearer token, to be approved.
	JoinPath = "/v1/join"
)

// Facts are what an agent reports of its cluster, for the user who approves it.
type Facts struct {
	ClusterID  string `json:"clusterID,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	Version    string `json:"version,omitempty"`
}
