package policy

import (
	"fmt"
	"slices"
	"strings"
)

// ApprovalPolicy says which calls people are asked about.
type ApprovalPolicy string

// The approval policies.
const (
	Strict    ApprovalPolicy = "strict"     // every call
	OnRequest ApprovalPolicy = "on_request" // every call that isn't known to be harmless
	Never     ApprovalPolicy = "never"      // none: what would have asked is allowed, a deny stays
)

// SandboxMode says what tools may touch at all.
type SandboxMode string

// The sandbox modes.
const (
	ReadOnly         SandboxMode = "read_only"          // tools that may change something are denied
	WorkspaceWrite   SandboxMode = "workspace_write"    // changes are confined to the workspace
	DangerFullAccess SandboxMode = "danger_full_access" // no confinement
)

// From loosest to strictest: a value's place in the list is its strictness.
var (
	approvalPolicies = []ApprovalPolicy{Never, OnRequest, Strict}
	sandboxModes     = []SandboxMode{DangerFullAccess, WorkspaceWrite, ReadOnly}
)

// ParseApprovalPolicy returns the policy of that name, or an error that lists
// the names there are.
func ParseApprovalPolicy(s string) (ApprovalPolicy, error) {
	return parse(s, "approval policy", approvalPolicies)
}

// ParseSandboxMode returns the mode of that name, or an error that lists the
// names there are.
func ParseSandboxMode(s string) (SandboxMode, error) {
	return parse(s, "sandbox mode", sandboxModes)
}

func parse[T ~string](s, what string, known []T) (T, error) {
	if slices.Contains(known, T(s)) {
		return T(s), nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return "", fmt.Errorf("unknown %s %q: want one of %s", what, s, strings.Join(names, ", "))
}

// AtLeast reports whether a is as strict as b or stricter. An unknown value on
// either side is never at least anything.
func (a ApprovalPolicy) AtLeast(b ApprovalPolicy) bool { return atLeast(a, b, approvalPolicies) }

// AtLeast reports whether m is as strict as n or stricter. An unknown value on
// either side is never at least anything.
func (m SandboxMode) AtLeast(n SandboxMode) bool { return atLeast(m, n, sandboxModes) }

func atLeast[T comparable](a, b T, known []T) bool {
	i, j := slices.Index(known, a), slices.Index(known, b)
	return i >= 0 && j >= 0 && i >= j
}

// UnmarshalText makes the type usable as a setting and as a field of a request:
// a wrong word is refused where it is read.
func (a *ApprovalPolicy) UnmarshalText(text []byte) (err error) {
	*a, err = ParseApprovalPolicy(string(text))
	return err
}

// UnmarshalText makes the type usable as a setting and as a field of a request:
// a wrong word is refused where it is read.
func (m *SandboxMode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseSandboxMode(string(text))
	return err
}

// Settings are the two settings of a policy.
type Settings struct {
	ApprovalPolicy ApprovalPolicy `json:"approvalPolicy,omitempty"`
	SandboxMode    SandboxMode    `json:"sandboxMode,omitempty"`
}

func (s Settings) valid() bool {
	return slices.Contains(approvalPolicies, s.ApprovalPolicy) && slices.Contains(sandboxModes, s.SandboxMode)
}

// WeakerError is returned for a request that would loosen what is in force.
type WeakerError struct {
	Field     string // "approvalPolicy" or "sandboxMode"
	InForce   string
	Requested string
}

func (e *WeakerError) Error() string {
	return fmt.Sprintf("%s %s is weaker than %s, which is in force; a request can only make it stricter",
		e.Field, e.Requested, e.InForce)
}

// Tighten returns s with what request asks for. An empty field asks for
// nothing; an unknown word is an error, a looser one a [*WeakerError].
func (s Settings) Tighten(request Settings) (Settings, error) {
	if request.ApprovalPolicy != "" {
		if _, err := ParseApprovalPolicy(string(request.ApprovalPolicy)); err != nil {
			return Settings{}, err
		}
		if !request.ApprovalPolicy.AtLeast(s.ApprovalPolicy) {
			return Settings{}, &WeakerError{"approvalPolicy", string(s.ApprovalPolicy), string(request.ApprovalPolicy)}
		}
		s.ApprovalPolicy = request.ApprovalPolicy
	}
	if request.SandboxMode != "" {
		if _, err := ParseSandboxMode(string(request.SandboxMode)); err != nil {
			return Settings{}, err
		}
		if !request.SandboxMode.AtLeast(s.SandboxMode) {
			return Settings{}, &WeakerError{"sandboxMode", string(s.SandboxMode), string(request.SandboxMode)}
		}
		s.SandboxMode = request.SandboxMode
	}
	return s, nil
}
