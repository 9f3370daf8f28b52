// Package replicas runs scripts that count only when replicas have their writes.
//
// # How a call travels
//
//  1. A caller passes some calls. Those of one node go together. On a cluster or a Ring, the node is the one that serves the
//     key, because WAIT has no key that a client could route it by.
//  2. At most a few pipelines to a node are in flight, since each holds a connection until the replicas have answered.
//     Calls that gather in the meantime go with the next one, except those whose callers have left by then.
//  3. A pipeline has the scripts, then a write of its own (mark.lua), then WAIT: all on one connection. WAIT counts the replicas
//     that have all that its connection has written.
//  4. The mark is there because a script that runs twice may find nothing to write the second time. Without it WAIT would count
//     the replicas that have an earlier write of the connection, and say nothing of the first run, which another connection sent.
//  5. When too few replicas have answered, each call of the pipeline has failed with an Error, whatever its script returned.
//
// The client may send a pipeline again whose connection broke: all of it, so the second copy has a WAIT of its own. So has a call
// that its caller sends again. When the server has forgotten a script, all scripts of the pipeline run again by their sources, as
// all are safe to run twice. When a cluster has moved a key, its calls go to its new node.
//
// # What it does not promise
//
// WAIT does not make Redis strongly consistent. It says that some replicas had the write in memory. See docs/locks.md.
package replicas
