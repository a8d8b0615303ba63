// Package transporttest is the suite that every transport.Bus passes. It tests what the
// port promises and no more. The port does not promise that messages come once or in
// order, so that is not tested, except for one message id on a bus without faults.
//
//	func TestBus(t *testing.T) { transporttest.Run(t, open) }
package transporttest
