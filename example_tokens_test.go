package quipu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/api/access"
)

// A shop gets a token with which it starts jobs by the HTTP API. When it is not needed any more,
// it is revoked.
func ExampleTokens() {
	ctx := context.Background()
	rt, _, end := example(`{flow: one, version: "1", activities: {start: {type: trigger}}}`, nil)
	defer end()

	token, err := rt.Tokens().Create(ctx, "shop", access.Client, 90*24*time.Hour)
	must(err)
	all, err := rt.Tokens().List(ctx)
	must(err)
	fmt.Println(all[0].Name, "has the role", all[0].Role, "for a time:", !all[0].Ends.IsZero())
	who, holds, err := rt.Tokens().Who(ctx, token)
	must(err)
	fmt.Println("it holds:", holds, "for", who.Name)

	must(rt.Tokens().Revoke(ctx, "shop"))
	_, holds, err = rt.Tokens().Who(ctx, token)
	must(err)
	fmt.Println("it holds:", holds)
	// Output:
	// shop has the role client for a time: true
	// it holds: true for shop
	// it holds: false
}
