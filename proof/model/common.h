/* A rule of the protocol holds unless the model is made with -DBROKEN=that rule. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define RULE(name) (BROKEN != name)
#ifndef TIMERS
#define TIMERS 1
#endif
