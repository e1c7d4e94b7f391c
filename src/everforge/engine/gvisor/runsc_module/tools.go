//go:build tools

// Package tools keeps runsc among this module's requirements, so that go.mod and go.sum pin it and all it is built from.
package tools

import _ "gvisor.dev/gvisor/runsc"
