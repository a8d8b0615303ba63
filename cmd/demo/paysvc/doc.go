// Command paysvc serves package examples/orders/shop, the outside world of the demo.
package main
