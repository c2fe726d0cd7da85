/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Common part of all controllers: growth within bounds, and the fall of the threshold. After an algorithm's header. */
#include "view.h"

/* Window after congestion avoidance of `acked` segments, at most one window of them [2^-32 segments]. */
INLINE u64 grown(const struct view *v, const struct memory *m, number acked)
{
	s64 cwnd = v->cwnd;

	cwnd += growth(v, m, smaller(acked, window_of(v->cwnd)));
	return cwnd < (s64)SEGMENT ? SEGMENT : cwnd;
}

/* Slow-start threshold after a loss [2^-32 segments]: two segments at least (RFC 5681, Eq. 4). */
INLINE u64 fallen(const struct view *v, const struct memory *m)
{
	u64 left = threshold(v, m);

	if (left > v->cwnd)
		left = v->cwnd;
	return left < 2 * SEGMENT ? 2 * SEGMENT : left;
}

/* An RTT sample [us]; a sample of 0 or less is none. */
INLINE void sampled(struct memory *m, s32 rtt)
{
	if (rtt <= 0)
		return;
	m->rtt = rtt;
	if (!m->base || (u32)rtt < m->base)
		m->base = rtt;
#ifdef BY_ROUNDS
	m->sum += rtt;
	m->samples++;
#endif
}

/* A loss ends a run of acknowledged segments. */
INLINE void lost(struct memory *m)
{
	m->between = m->since;
	m->since = 0;
#ifdef BY_ROUNDS
	restart(m, 1);
#endif
}
