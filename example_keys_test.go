package quipu_test

import (
	"context"
	"fmt"
	"strings"
)

// Keys are rotated in the running space. A worker in another language is given the key of its
// topic.
func ExampleKeys() {
	ctx := context.Background()
	rt, _, end := example(`{flow: one, version: "1", activities: {start: {type: trigger}}}`, nil)
	defer end()

	id, err := rt.Keys().Rotate(ctx, false)
	must(err)
	all, err := rt.Keys().List(ctx)
	must(err)
	fmt.Println("new key:", id, "keys:", len(all), "the old one holds for a day:", !all[0].Ends.IsZero())
	text, err := rt.Keys().Topic(ctx, "labels.print")
	must(err)
	fmt.Println("QUIPU_TOPIC_KEY begins with", strings.Split(text, ":")[0])

	must(rt.Keys().Switch(ctx, false)) // where a worker cannot have a key
	on, err := rt.Keys().On(ctx)
	must(err)
	fmt.Println("signed:", on)
	// Output:
	// new key: 2 keys: 2 the old one holds for a day: true
	// QUIPU_TOPIC_KEY begins with 2
	// signed: false
}
