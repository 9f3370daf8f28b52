package scenario

// costs are what one of each thing costs, measured on a fleet that is small beside those that they are to predict. Times
// are in microseconds, sizes in bytes.
type costs struct {
	rtt   float64 // from sending a GET to its reply, at a server that has nothing else to do
	alone float64 // from the end of a load that nobody else waits for to its caller's answer

	// The server's processor time, reading and writing included.
	get        float64 // of a missing key, when many ask at once
	acquire    float64 // of a lease that is held
	fill       float64 // that nobody waits for
	fillScript float64 // of that, inside the script
	publish    float64 // to one inbox: inside fill, while nobody is served
	write      float64 // of that message to its socket
	probe      float64 // of an inbox by its own process

	// This process's processor time.
	asking float64 // an instance's GET and acquire
	waking float64 // an instance, from its message to its caller's answer
	caller float64 // from one caller's answer to the next one's, on one instance

	// Memory.
	guard        float64 // an instance, in this process
	sharing      float64 // one more Guard on a client that has one
	waiter       float64 // an instance that waits for a key: the first caller, and its flight
	follower     float64 // one more caller who waits
	connections  float64 // an instance's, at the server
	lease, inbox float64 // at the server: a key being loaded, and each inbox that waits for it
}

// figures are the costs for a report.
func (c *costs) figures() Figures {
	return Figures{
		"RTT": c.rtt, "alone": c.alone,
		"GET": c.get, "acquire": c.acquire, "fill": c.fill, "publish": c.publish, "write": c.write, "probe": c.probe,
		"asking": c.asking, "waking": c.waking, "caller": c.caller,
		"guard": c.guard, "sharing": c.sharing, "waiter": c.waiter, "follower": c.follower,
		"connections": c.connections, "lease": c.lease, "inbox": c.inbox,
	}
}
