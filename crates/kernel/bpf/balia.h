/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BALIA (draft-walid-mptcp-congestion-control). With x = w / rtt and a = max x / x:
 *   per acknowledged segment  (x / rtt) / (sum of x)^2 * (1 + a) / 2 * (4 + a) / 5
 *   on loss                   w -= w / 2 * min(a, 3 / 2)
 */
#include "view.h"

struct terms {
	number steep, rates, alpha;
};

INLINE struct terms terms(const struct view *v)
{
	number zero = real(0, 0), best = zero, own = zero;
	struct terms t = { zero, zero, zero };

	EACH_FLOW(f, v) {
		number rate = rate_of(f);

		best = larger(best, rate);
		t.rates = plus(t.rates, rate);
		own |= rate & -(u64)f->self;
		t.steep |= over(rate, real(f->srtt, 0)) & -(u64)f->self;
	}
	t.alpha = over(best, own);
	return t;
}

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	struct terms t = terms(v);
	number factor, increase;

	factor = times(plus(real(1, 0), t.alpha), plus(real(4, 0), t.alpha));
	increase = times(over(t.steep, times(t.rates, t.rates)), over(factor, real(10, 0)));
	increase = pick(any(t.alpha), increase, alone(v));
	return fixed(times(increase, acked), FRACTION);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	number alpha = terms(v).alpha, most = real(3, -1);

	alpha = pick(any(alpha), alpha, real(1, 0));
	alpha = smaller(alpha, most);
	return v->cwnd - fixed(times(window_of(v->cwnd / 2), alpha), FRACTION);
}
