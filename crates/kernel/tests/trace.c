/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the arithmetic of ALGORITHM over traces. Input, one event a line: `n FLOWS` begins a trace, `a FLOW ACKED RTT
 * SRTT ENDS` is an ACK [segments, us, us] that ends a round trip or not, `l FLOW` a loss, `r FLOW` its repair. Output:
 * the window of the flow after each event but the first kind [2^-32 segments].
 */
#include <stdio.h>
#include <string.h>
#include ALGORITHM
#include "window.h"

static struct {
	u64 cwnd, ssthresh;
	u32 srtt, repairs;
	struct memory memory;
} flows[SUBFLOWS];

static struct view seen_by(unsigned self)
{
	struct view v;

	memset(&v, 0, sizeof(v));
	v.cwnd = flows[self].cwnd;
	for (unsigned i = 0; i < SUBFLOWS; i++) {
		const struct memory *m = &flows[i].memory;

		v.flows[i].window = flows[i].repairs ? flows[i].ssthresh : flows[i].cwnd;
		v.flows[i].told = told(m);
		v.flows[i].srtt = flows[i].srtt;
		v.flows[i].self = i == self;
	}
	return v;
}

static void on_ack(unsigned at, u32 acked, u32 rtt, u32 srtt, u32 ends)
{
	u64 left;
	struct view v;
#ifdef BY_ROUNDS
	struct windows w = { flows[at].cwnd, flows[at].ssthresh };
#endif

	sampled(&flows[at].memory, rtt);
	flows[at].memory.since += acked;
	if (flows[at].repairs)
		return;
	flows[at].srtt = srtt * 8;
#ifdef BY_ROUNDS
	v = seen_by(at);
	if (decided(&v, &flows[at].memory, flows[at].memory.end + ends, flows[at].memory.end + 1, &w)) {
		flows[at].cwnd = w.cwnd;
		flows[at].ssthresh = w.ssthresh;
		return;
	}
#endif
	left = (u64)acked << FRACTION;
	if (flows[at].cwnd < flows[at].ssthresh) {
		u64 room = smaller(flows[at].ssthresh - flows[at].cwnd, left);

		flows[at].cwnd += room;
		left -= room;
	}
	if (!left)
		return;
	v = seen_by(at);
	flows[at].cwnd = grown(&v, &flows[at].memory, window_of(left));
}

static void on_loss(unsigned at)
{
	struct view v = seen_by(at);

	flows[at].ssthresh = fallen(&v, &flows[at].memory);
	lost(&flows[at].memory);
	flows[at].cwnd = smaller(flows[at].cwnd, flows[at].ssthresh);
	flows[at].repairs = 1;
}

static void on_repair(unsigned at)
{
	flows[at].repairs = 0;
#ifdef BY_ROUNDS
	restart(&flows[at].memory, 0);
#endif
}

int main(void)
{
	char event;
	unsigned at;
	u32 acked, rtt, srtt, ends;

	while (scanf(" %c %u", &event, &at) == 2) {
		if (event == 'n') {
			memset(flows, 0, sizeof(flows));
			for (unsigned i = 0; i < at; i++) {
				flows[i].cwnd = 10 * SEGMENT;
				flows[i].ssthresh = 20 * SEGMENT;
			}
			continue;
		}
		if (at >= SUBFLOWS)
			return 1;
		if (event == 'a' && scanf("%u %u %u %u", &acked, &rtt, &srtt, &ends) == 4)
			on_ack(at, acked, rtt, srtt, ends);
		else if (event == 'l')
			on_loss(at);
		else if (event == 'r')
			on_repair(at);
		else
			return 1;
		printf("%llu\n", flows[at].cwnd);
	}
	return 0;
}
