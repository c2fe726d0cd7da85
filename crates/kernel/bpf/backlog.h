/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Veno's test: cwnd * (rtt - base) / rtt of our packets wait in the queue. */
#ifndef AB_BACKLOG_H
#define AB_BACKLOG_H

#include "view.h"

/* Queued packets from which on a loss counts as congestion (beta of Fu and Liew 2003). */
#define BETA 3

INLINE u64 is_congested(const struct view *v, const struct memory *m)
{
	number backlog = times(window_of(v->cwnd), real(m->rtt - m->base, 0));

	return any(m->rtt) & (1 - below(backlog, real(BETA * (u64)m->rtt, 0)));
}

/* Window left by a loss [2^-32 segments]: 4/5 while the queue is short, otherwise 1/2. */
INLINE u64 veno_threshold(const struct view *v, const struct memory *m)
{
	return pick(is_congested(v, m), v->cwnd / 2, v->cwnd / 5 * 4);
}

/* Half of the increase while the queue is long. */
INLINE number veno_increase(const struct view *v, const struct memory *m, number increase)
{
	return pick(is_congested(v, m), times(increase, real(1, -1)), increase);
}

#endif
