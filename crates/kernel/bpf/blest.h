/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BLEST as printed (S. Ferlin et al., IFIP Networking 2016). With r = RTT_s / RTT_f, the slow subflow s may send if
 *   mss_f (w_f + (r - 1) / 2) r lambda <= window - mss_s (in flight on s + 1)
 * lambda begins at 1 and moves by 1/20 once per round trip of f: up if the window blocked f meanwhile, otherwise down.
 */
#include "schedule.h"

#define STEPS 20 /* of lambda in 1 */

INLINE void correct(const struct moment *m, struct memory *s, const struct path *fast)
{
	s->fast = fast->id + 1;
	s->since = pick(any(s->since), s->since, m->now);
	if (m->now - s->since < (u64)fast->srtt * 125)
		return;
	if (s->blocked)
		s->steps++;
	else if (s->steps > -STEPS)
		s->steps--;
	s->blocked = 0;
	s->since = m->now;
}

/* Data that the fast subflow sends during one round trip of the slow one [bytes]. */
INLINE number sent_meanwhile(const struct path *fast, const struct path *slow)
{
	number once = real(fast->srtt, 0), more = real(slow->srtt - fast->srtt, 0);
	number rise = times(real(fast->mss, -1), over(more, once));

	return times(plus(real(fast->window, 0), rise), over(real(slow->srtt, 0), once));
}

INLINE u64 decided(const struct moment *m, struct memory *s)
{
	u64 fast_at = fastest(m, 0), slow_at = fastest(m, 1), used, fits;
	const struct path *fast = path_at(m, fast_at), *slow = path_at(m, slow_at);
	number lambda;

	if (slow_at == SUBFLOWS)
		return 0;
	correct(m, s, fast);
	lambda = over(real(STEPS + s->steps, 0), real(STEPS, 0));
	used = (u64)slow->flight + slow->mss;
	fits = below(m->window, used) ^ 1;
	fits &= below(real(m->window - used, 0), times(sent_meanwhile(fast, slow), lambda)) ^ 1;
	return pick(fits | is_plain(fast, fast_at, slow_at), only(slow_at), 0);
}
