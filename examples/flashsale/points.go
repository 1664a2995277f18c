package main

// point is a place between two steps, where a test stops a component and kills it, or one of its servers.
type point string

// The points, in the order in which an order comes by.
const (
	beforeReserve point = "gate: before the reservation"
	afterReserve  point = "gate: reserved, not sent"
	afterSend     point = "gate: sent, not answered"
	sendFailed    point = "gate: could not be sent, not given back"
	afterGiveBack point = "gate: given back, not answered"
	afterReceive  point = "consumer: received"
	afterTake     point = "consumer: taken, not booked"
	beforeCommit  point = "consumer: before the commit"
	afterCommit   point = "consumer: committed, not confirmed"
	afterConfirm  point = "consumer: confirmed, not acknowledged"
	afterAck      point = "consumer: acknowledged"
	afterRefusal  point = "consumer: refused, not given back"
	afterRelease  point = "consumer: given back, not acknowledged"
	beforeSweep   point = "sweeper: found, not given back"
	afterSweep    point = "sweeper: given back"
	afterVoid     point = "consumer: given up, not given back"
	beforeBury    point = "consumer: given up and given back, not buried"
)

// passing is called by components at each point. In the program it does nothing.
type passing func(p point)

func passThrough(point) {}
