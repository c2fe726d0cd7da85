/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Input of a congestion control: the subflows of one connection as one of them sees them. Windows are in segments with
 * 32 bits of fraction ("2^-32 segments").
 */
#ifndef AB_VIEW_H
#define AB_VIEW_H

#include "number.h"

/* Subflows that are looked at; Linux allows no more (MPTCP_SUBFLOWS_MAX). */
#define SUBFLOWS 8
#define FRACTION 32
#define SEGMENT (1ULL << FRACTION)

/* Memory of one subflow. Linux keeps 104 bytes for it (icsk_ca_priv). All zero at first. */
struct memory {
	u32 fraction; /* of the window, 2^-32 segments */
	u32 base; /* smallest RTT ever [us] */
	u32 rtt; /* latest RTT [us] */
	u32 end; /* of the round: an ACK of more ends it [sequence number] */
	u64 between; /* segments acknowledged between the last two losses */
	u64 since; /* and since the last */
	/* Of controls that decide once per round trip. */
	u64 sum; /* of RTT samples in this round [us] */
	u64 least; /* smallest queueing delay; 0: none yet [ns] */
	number rate; /* when `alpha` was set last; 0 before [segments/ns] */
	u32 samples;
	u32 alpha; /* packets that may wait in queues; 0: not set yet */
	u8 in_round;
	u8 unsure; /* this ACK ends a round that says too little */
	u8 repairing; /* from a loss until it is repaired */
};

struct flow {
	u64 window; /* that others couple to: in recovery the threshold [2^-32 segments] */
	u64 told; /* by its memory */
	u32 srtt; /* [1/8 us]; 0: the subflow does not count */
	u32 self; /* this subflow asks */
};

/* Window and threshold [2^-32 segments]. */
struct windows {
	u64 cwnd, ssthresh;
};

struct view {
	u64 cwnd; /* of the subflow that asks [2^-32 segments] */
	struct flow flows[SUBFLOWS];
};

/*
 * Visits all places, also of subflows that do not count: their SRTT is 0, and so are their rates. The verifier knows
 * the index, not the order of two pointers.
 */
#define EACH_FLOW(f, v)                                                                      \
	for (u64 f##_at = 0; opaque(f##_at) < SUBFLOWS; f##_at++)                            \
		for (const struct flow *f = &(v)->flows[opaque(f##_at)]; f; f = (void *)0)

INLINE number window_of(u64 window)
{
	return real(window, -FRACTION);
}

/* Window per round trip; the unit of time cancels in every use. */
INLINE number rate_of(const struct flow *f)
{
	return over(window_of(f->window), real(f->srtt, 0));
}

/* Tells other subflows what they couple to beside window and SRTT: the rate, or the longer run without a loss. */
INLINE u64 told(const struct memory *m)
{
#ifdef BY_ROUNDS
	return m->rate;
#else
	return larger(m->between, m->since);
#endif
}

/* Growth of NewReno per acknowledged segment. */
INLINE number alone(const struct view *v)
{
	return over(real(1, 0), window_of(v->cwnd));
}

/* Returns nonzero if the subflow that asks counts. */
INLINE u32 is_linked(const struct view *v)
{
	u32 linked = 0;

	EACH_FLOW(f, v)
		linked |= f->self & any(f->srtt);
	return linked;
}

#endif
