package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
)

// maxDeployBody bounds the body of a deployment: a definition as a JSON string, in which each of its
// characters may take two.
const maxDeployBody = 2 * flow.MaxDefinitionBytes

// maxFaults bounds the faults, and the warnings, that an answer lists.
const maxFaults = 100

// definition is the name of a definition in the texts of its faults.
const definition = "definition"

func (a *api) flows(w http.ResponseWriter, r *http.Request) error {
	all, err := a.rt.Flows(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Flows{Flows: all})
}

func (a *api) flow(w http.ResponseWriter, r *http.Request) error {
	text, err := below.Of(a.rt).Flow(r.Context(), r.PathValue("flow"), r.PathValue("version"))
	if err != nil {
		return fmt.Errorf("read a definition: %w", err)
	}
	return answer(w, http.StatusOK, json.RawMessage(text))
}

// deploy stores a version of a flow.
func (a *api) deploy(w http.ResponseWriter, r *http.Request) error {
	var body DeployRequest
	err := decode(r, &body)
	if big, is := errors.AsType[*http.MaxBytesError](err); is {
		return access.NewProblem(http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf(
			"the body is over %d bytes, the limit; a definition has at most %d", big.Limit, flow.MaxDefinitionBytes))
	}
	if err != nil {
		return err
	}
	f, err := flow.Parse(definition, []byte(body.Definition))
	if err != nil {
		return err
	}
	done, err := a.rt.Operator().Deploy(r.Context(), f, body.Activate == nil || *body.Activate,
		quipu.Who(access.Of(r.Context()).Name))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Deployed{Deployed: *done, Warnings: faultsOf(f.Warnings())})
}

// activate lets new jobs of a flow take a version.
func (a *api) activate(w http.ResponseWriter, r *http.Request) error {
	if err := decode(r, &ActivateRequest{}); err != nil {
		return err
	}
	err := a.rt.Operator().Activate(r.Context(), r.PathValue("flow"), r.PathValue("version"),
		quipu.Who(access.Of(r.Context()).Name))
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// faultsOf are the faults of a definition as a problem has them, at most maxFaults.
func faultsOf(all []flow.Fault) []access.Fault {
	out := make([]access.Fault, min(len(all), maxFaults))
	for i := range out {
		x := &all[i]
		out[i] = access.Fault{Line: x.Line, Column: x.Column, Path: x.Path, Text: x.Text, Message: x.Message}
	}
	return out
}

// faulty is the problem of a definition that has faults.
func faulty(all flow.Faults) *access.Problem {
	detail := all[0].Error()
	if n := len(all); n > 1 {
		detail = fmt.Sprintf("%d faults, the first: %s", n, detail)
	}
	p := access.NewProblem(http.StatusUnprocessableEntity, CodeFlow, detail)
	p.Faults = faultsOf(all)
	return p
}

// faultsIn are the faults of a problem as flow.Parse returns them.
func faultsIn(p *access.Problem) flow.Faults {
	out := make(flow.Faults, len(p.Faults))
	for i, x := range p.Faults {
		out[i] = flow.Fault{
			File: definition, Line: x.Line, Column: x.Column, Path: x.Path, Text: x.Text, Message: x.Message,
		}
	}
	return out
}
