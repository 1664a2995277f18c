package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

func (a *app) renewCommand() *cobra.Command {
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "renew [HANDLE]",
		Short: "Keep a lock that acquire took",
		Long: `Make the lock last for its lease from now. Without HANDLE, $INTERLOCK_HANDLE is taken.
Ends with 79 if the lock is gone: another may hold it by now, so the script has to stop.`,
		GroupID: "jobs",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.handleArg(cmd, args)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("lease") {
				if err := checkLeaseFlag(lease); err != nil {
					return err
				}
				h.Lease = lease
			}
			return a.renew(cmd.Context(), h)
		},
	}
	cmd.Flags().DurationVar(&lease, "lease", 0, "another lease than at first; a renewal never shortens what is left")
	return cmd
}

func (a *app) renew(ctx context.Context, h *handle) error {
	e, renewer, err := a.openForHandles(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	ctx, cancel := a.within(ctx)
	defer cancel()
	if err := renewHandle(ctx, renewer, h, h.Lease); err != nil {
		return named(h, err)
	}
	if a.output == asJSON {
		return a.printJSON(grantObject{schemaVersion, h.Name, h.Token, h.Owner, h.Lease.String(), h.String()})
	}
	_, err = fmt.Fprintf(a.stdout, "%q is held for another %v\n", h.Name, h.Lease)
	return err
}

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release [HANDLE]",
		Short: "Give back a lock that acquire took",
		Long: `Give the lock back. Without HANDLE, $INTERLOCK_HANDLE is taken.
Ends with 79 if the lock had been lost before: what the script did last may have met another holder.`,
		GroupID: "jobs",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.handleArg(cmd, args)
			if err != nil {
				return err
			}
			return a.release(cmd.Context(), h)
		},
	}
}

// releaseObject is what release prints.
type releaseObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	Name          string `json:"name"`
	Token         uint64 `json:"token,string"`
	Released      bool   `json:"released"`
}

func (a *app) release(ctx context.Context, h *handle) error {
	e, _, err := a.openForHandles(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	ctx, cancel := a.within(ctx)
	defer cancel()
	err = e.driver.Release(ctx, &driver.Release{Key: h.key(), ID: h.ID})
	if err != nil {
		return named(h, engineError("release", h.Name, err))
	}
	if a.output == asJSON {
		return a.printJSON(releaseObject{schemaVersion, h.Name, h.Token, true})
	}
	_, err = fmt.Fprintf(a.stdout, "%q is given back\n", h.Name)
	return err
}

func isLost(err error) bool { return errors.Is(err, interlock.ErrLost) }

// named completes a driver's bare ErrLost with what the handle knows.
func named(h *handle, err error) error {
	var lost *interlock.LostError
	if isLost(err) && !errors.As(err, &lost) {
		return &interlock.LostError{Kind: h.Kind, Name: h.Name, Token: h.Token, Reason: driver.LostExpired}
	}
	return err
}
