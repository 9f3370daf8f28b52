// Package day computes a day of a large fleet, second by second: what its database and its Redis see while deployments, failovers and a sale go on.
// Nothing runs, and nothing is drawn: the keys of a kind are in classes of about the same popularity, and a class knows how many of its keys are
// cached, when these expire, and how many wait for a load. So a day of a billion Gets takes seconds.
//
// The prices of single operations are measured (bench/results/scale). TestTheModelAgreesWithGuards runs Guards through a small day, on a simulated clock, and
// compares their loads and requests with the computed ones.
package day
