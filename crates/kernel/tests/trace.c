/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the arithmetic of ALGORITHM over traces. Input, one event a line: `n FLOWS` begins a trace, `a FLOW ACKED RTT
 * SRTT` is an ACK [segments, us, us], `l FLOW` a loss, `r FLOW` its repair. Output: the window of the flow after each
 * event but the first kind [2^-32 segments].
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
		v.flows[i].run = larger(m->between, m->since);
		v.flows[i].srtt = flows[i].srtt;
		v.flows[i].self = i == self;
	}
	return v;
}

static void on_ack(unsigned at, u32 acked, u32 rtt, u32 srtt)
{
	u64 left;
	struct view v;

	sampled(&flows[at].memory, rtt);
	flows[at].memory.since += acked;
	if (flows[at].repairs)
		return;
	flows[at].srtt = srtt * 8;
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

int main(void)
{
	char event;
	unsigned at;
	u32 acked, rtt, srtt;

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
		if (event == 'a' && scanf("%u %u %u", &acked, &rtt, &srtt) == 3)
			on_ack(at, acked, rtt, srtt);
		else if (event == 'l')
			on_loss(at);
		else if (event == 'r')
			flows[at].repairs = 0;
		else
			return 1;
		printf("%llu\n", flows[at].cwnd);
	}
	return 0;
}
