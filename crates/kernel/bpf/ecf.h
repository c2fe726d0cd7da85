/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ECF (Y.-S. Lim et al., ACM CoNEXT 2017). With k bytes unsent and d the larger RTTVAR, waits for the fast subflow f if
 *   (1 + k / w_f) RTT_f < (1 + waiting / 4) (RTT_s + d)    and    k / w_s RTT_s >= 2 RTT_f + d
 */
#include "schedule.h"

INLINE u64 decided(const struct moment *m, struct memory *s)
{
	u64 fast_at = fastest(m, 0), slow_at = fastest(m, 1), margin, late, early, plain;
	const struct path *fast = path_at(m, fast_at), *slow = path_at(m, slow_at);
	number patience, queued = real(m->unsent, 0), via_fast, until;

	if (slow_at == SUBFLOWS)
		return 0;
	plain = is_plain(fast, fast_at, slow_at);
	margin = larger(fast->deviation, slow->deviation);
	patience = times(real(4 + s->waiting, -2), real(slow->srtt + margin, 0));
	via_fast = times(plus(real(fast->window, 0), queued), real(fast->srtt, 0));
	late = below(via_fast, times(patience, real(fast->window, 0))) ^ 1;
	until = times(real(slow->window, 0), real(2 * (u64)fast->srtt + margin, 0));
	early = below(times(queued, real(slow->srtt, 0)), until);
	/* A plain decision weighs nothing and remembers nothing. */
	s->waiting = pick(plain, s->waiting, pick(late, 0, pick(early, s->waiting, 1)));
	return pick(plain | late | early, only(slow_at), 0);
}
