/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * wVegas (Cao, Xu and Fu 2012; order of steps and constants of the authors' module for Linux, mptcp_wvegas). Once per
 * round trip, with `rtt` the mean of its samples and `w` the window:
 *   diff = w * (rtt - base) / rtt
 *   slow start:  if diff > 1: w = min(w, w * base / rtt + 1), and slow start is over
 *   then:        if diff >= alpha: alpha = max(2, 10 * (w / rtt) / (sum of w / rtt))
 *                w -= 1 if diff > alpha, w += 1 if diff < alpha
 *                if rtt - base has doubled since its least: w *= base / (2 * rtt)
 * `diff` and `alpha` are whole. A round with less than three samples is NewReno's, as is everything from a loss until
 * it is repaired. Times in a round are in ns, so that the mean keeps its fraction.
 */
#define BY_ROUNDS
#include "view.h"

#define TOTAL_ALPHA 10
#define GAMMA 1
#define LEAST_ALPHA 2
#define LEAST_SAMPLES 3

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	return fixed(times(alone(v), acked), FRACTION) & -(u64)(m->repairing | m->unsure);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	return v->cwnd / 2;
}

/* Forgets the round and all that it led to, but not the smallest RTT and the rate. */
INLINE void restart(struct memory *m, u32 repairing)
{
	m->alpha = 0;
	m->in_round = 0;
	m->sum = 0;
	m->samples = 0;
	m->least = 0;
	m->unsure = 0;
	m->repairing = repairing;
}

/* Tells if the ACK of `ack` ends a round: it acknowledges what was sent after the round began. The next begins with it;
 * what is sent next is `next`. */
INLINE u32 ends_round(struct memory *m, u32 ack, u32 next)
{
	if (m->in_round && (s32)(ack - m->end) <= 0)
		return 0;
	m->end = next;
	if (m->in_round)
		return 1;
	m->in_round = 1;
	return 0;
}

/* Sets this subflow's part of the packets that may wait in queues, by its part of the rates. */
INLINE void share(const struct view *v, struct memory *m, number rate)
{
	number rates = rate;
	u64 part;

	m->rate = rate;
	EACH_FLOW(f, v)
		rates = plus(rates, f->told & (f->self - 1ULL));
	part = fixed(times(over(rate, rates), real(TOTAL_ALPHA, 0)), 0);
	m->alpha = larger(part, LEAST_ALPHA);
}

/* At an ACK: true if a round is over and decides. Then `w` has the windows that follow. */
INLINE u32 decided(const struct view *v, struct memory *m, u32 ack, u32 next, struct windows *w)
{
	u64 samples = m->samples, rtt, base = m->base * 1000ULL, queue, diff, alpha;
	number window = window_of(v->cwnd), emptied;

	m->unsure = 0;
	if (m->repairing || !ends_round(m, ack, next))
		return 0;
	rtt = m->sum * 1000 / (samples + !samples);
	m->sum = 0;
	m->samples = 0;
	if (samples < LEAST_SAMPLES) {
		m->unsure = 1;
		return 0;
	}
	queue = rtt - base;
	diff = fixed(over(times(window, real(queue, 0)), real(rtt, 0)), 0);
	emptied = over(real(base, 0), real(rtt, 0));
	if (w->cwnd < w->ssthresh) {
		if (diff <= GAMMA)
			return 0;
		w->cwnd = smaller(w->cwnd, fixed(times(window, emptied), FRACTION) + SEGMENT);
		w->cwnd = larger(w->cwnd, 2 * SEGMENT);
		w->ssthresh = larger(smaller(w->ssthresh, w->cwnd - SEGMENT), 2 * SEGMENT);
		return 1;
	}
	if (diff >= larger(m->alpha, LEAST_ALPHA))
		share(v, m, over(window, real(rtt, 0)));
	alpha = larger(m->alpha, LEAST_ALPHA);
	if (diff > alpha) {
		w->cwnd -= SEGMENT;
		w->ssthresh = larger(smaller(w->ssthresh, w->cwnd - SEGMENT), 2 * SEGMENT);
	} else if (diff < alpha) {
		w->cwnd += SEGMENT;
	}
	if (queue) {
		if (!m->least || queue < m->least)
			m->least = queue;
		if (queue >= 2 * m->least) {
			w->cwnd = fixed(times(window_of(w->cwnd), times(emptied, real(1, -1))), FRACTION);
			m->least = 0;
		}
	}
	w->cwnd = larger(w->cwnd, 2 * SEGMENT);
	return 1;
}
