//go:build !unix

package servers

import "errors"

func (p *process) pause(bool) error { return errors.ErrUnsupported }
